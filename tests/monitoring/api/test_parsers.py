from __future__ import annotations

from typing import Any

import pytest

from extraction.items import PARSER_VERSION

pytestmark = pytest.mark.django_db
PARSERS = "/api/v1/parsers"


def test_parsers_are_listed_and_shown_with_their_version(operator: Any) -> None:
    found = {parser["name"]: parser for parser in operator.get(PARSERS).json()["items"]}
    assert found["generic"]["version"] == PARSER_VERSION
    shown = operator.get(f"{PARSERS}/woocommerce").json()
    assert shown.items() >= found["woocommerce"].items()
    assert all(rule["selector"] for rule in shown["rules"])
    assert operator.get(f"{PARSERS}/magic").status_code == 404


def test_parsers_are_for_operators(api: Any) -> None:
    assert api.get(PARSERS).status_code == 403
    assert api.get(f"{PARSERS}/generic").status_code == 403
    page = {"url": "https://shop.example/p", "html": "<p>"}
    assert api.post(f"{PARSERS}/generic/test", page).status_code == 403


def test_a_parser_is_tried_on_a_page(operator: Any) -> None:
    html = """<h1 class="product_title">Lamp</h1><div class="summary entry-summary">
        <p class="price"><span class="woocommerce-Price-amount amount">19,90 €</span></p>
        <button class="single_add_to_cart_button">Buy</button></div>"""
    page = {"url": "https://shop.example/p", "html": html, "currency": "EUR"}
    answer = operator.post(f"{PARSERS}/woocommerce/test", page)
    assert answer.status_code == 200, answer.json()
    assert answer.json()["parser"] == "woocommerce"
    assert operator.post(f"{PARSERS}/magic/test", page).status_code == 404
