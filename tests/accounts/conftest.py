from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Client
from tests.factories.accounts import api_for
from tests.factories.static import static_root  # noqa: F401


@pytest.fixture
def api(client_row: Client) -> Any:
    """The client's own admin key."""
    return api_for(client_row)
