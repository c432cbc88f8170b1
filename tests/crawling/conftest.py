from __future__ import annotations

from pathlib import Path

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


@pytest.fixture
def page_files(settings: Settings, tmp_path: Path) -> Path:
    """Stored pages of this test alone."""
    local = {
        "BACKEND": "crawling.page_storage.LocalPages",
        "OPTIONS": {"location": tmp_path / "pages"},
    }
    settings.STORAGES = {**settings.STORAGES, "pages": local}
    return tmp_path / "pages"
