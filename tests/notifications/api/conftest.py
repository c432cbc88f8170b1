from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Client
from tests.factories.accounts import ClientFactory, api_for


@pytest.fixture(autouse=True)
def _urls(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.notifications.api.urls"


@pytest.fixture
def client() -> Client:
    made: Client = ClientFactory.create()
    return made


@pytest.fixture
def api(client: Client) -> Any:
    return api_for(client, ["write"])


@pytest.fixture
def stranger() -> Any:
    """Another client's key."""
    return api_for(ClientFactory.create(), ["admin"])
