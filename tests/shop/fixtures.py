"""A shop and a receiver for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from obsrv.demo.receiver import Receiver
from tests.shop.bulk import BulkShop
from tests.shop.server import ScriptedShop


@pytest.fixture
def shop() -> Iterator[ScriptedShop]:
    with ScriptedShop() as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Knows no secret yet: append to ``receiver.secrets``."""
    with Receiver() as running:
        yield running


@pytest.fixture(scope="session")
def bulk_shop() -> Iterator[BulkShop]:
    """A hundred pages, five of each twentieth of the mix; shared, so never re-price it."""
    with BulkShop(products=100) as running:
        yield running
