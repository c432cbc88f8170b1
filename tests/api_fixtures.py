"""Callers of the API, with the keys they hold."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Client
from tests.factories.accounts import ClientFactory, api_for


@pytest.fixture
def client_row(db: None) -> Client:
    return ClientFactory.create()


@pytest.fixture
def api(client_row: Client) -> Any:
    return api_for(client_row, ["write"])


@pytest.fixture
def reader(client_row: Client) -> Any:
    return api_for(client_row, ["read"])


@pytest.fixture
def stranger(db: None) -> Any:
    """Another client."""
    return api_for(ClientFactory.create(), ["write"])


@pytest.fixture
def operator(db: None) -> Any:
    return api_for(None)
