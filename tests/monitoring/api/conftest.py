from __future__ import annotations

import pytest

from accounts.models import Client
from monitoring.models import Website
from tests.factories.monitoring import WebsiteFactory
from tests.factories.static import static_root  # noqa: F401


@pytest.fixture
def website(client_row: Client) -> Website:
    return WebsiteFactory.create(client=client_row, active=True)
