from __future__ import annotations

import pytest
from django.utils import timezone
from pytest_django import Settings

from common.partitions import ensure_partitions


@pytest.fixture
def loopback(settings: Settings) -> None:
    """Crawling our own shop on this machine, without manners."""
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.CRAWL_DEFAULT_DELAY_SECONDS = 0
    settings.CRAWL_DEFAULT_CONCURRENCY = 8
    settings.CRAWL_BATCH_SECONDS = 0.1
    ensure_partitions("monitoring_producthistory", now=timezone.now())
