from __future__ import annotations

from typing import Any

import pytest

from extraction.items import PARSER_VERSION

pytestmark = pytest.mark.django_db
PARSERS = "/api/v1/parsers"


def test_parsers_are_listed_and_shown_with_their_version(operator: Any) -> None:
    (generic,) = operator.get(PARSERS).json()["items"]
    assert (generic["name"], generic["version"]) == ("generic", PARSER_VERSION)
    assert operator.get(f"{PARSERS}/generic").json() == generic
    assert operator.get(f"{PARSERS}/magic").status_code == 404


def test_parsers_are_for_operators(api: Any) -> None:
    assert api.get(PARSERS).status_code == 403
    assert api.get(f"{PARSERS}/generic").status_code == 403
