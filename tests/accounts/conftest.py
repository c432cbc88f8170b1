from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Client
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.static import static_root  # noqa: F401


@pytest.fixture
def client_row(db: None) -> Client:
    return ClientFactory.create()


@pytest.fixture
def api(client_row: Client) -> Any:
    """The client's own admin key."""
    return api_for(client_row)


@pytest.fixture
def operator(db: None) -> Any:
    return api_for(None)
