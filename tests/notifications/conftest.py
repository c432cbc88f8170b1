from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notifications.receiver import Receiver


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_ALLOW_HTTP = True
    with Receiver() as receiver:
        yield receiver
