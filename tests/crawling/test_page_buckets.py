"""Pages in a bucket, through a server that speaks S3 on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.files.storage import storages
from pytest_django import Settings

from crawling import page_retention as retention
from crawling import pages
from crawling.models import StoredPage
from tests.crawling.test_pages import store

moto = pytest.importorskip("moto.server", reason="needs the packages of requirements-dev.lock")
pytest.importorskip("storages")
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def bucket(settings: Settings) -> Iterator[None]:
    import boto3

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {"access_key": "test", "secret_key": "test", "region_name": "us-east-1"}
    options = {"bucket_name": "obsrv", "location": "pages", "endpoint_url": f"http://{host}:{port}"}
    backend = "crawling.bucket_storage.BucketPages"
    settings.STORAGES = {
        **settings.STORAGES,
        "pages": {"BACKEND": backend, "OPTIONS": options | access},
    }
    boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    ).create_bucket(Bucket="obsrv")
    yield
    server.stop()


def test_pages_go_into_the_bucket_and_come_back() -> None:
    bodies = [b"page %d" % number for number in range(20)]
    store(*bodies)
    store(*bodies)
    assert StoredPage.objects.count() == 20
    for stored in StoredPage.objects.all():
        assert pages.read_page(stored) in bodies


def test_old_pages_leave_the_bucket() -> None:
    store(b"old")
    (stored,) = StoredPage.objects.all()
    StoredPage.objects.update(last_seen_at="2020-01-01T00:00:00Z")
    assert retention.purge_pages() == 1
    assert not storages["pages"].exists(stored.storage_key)
    assert retention.sweep_orphans(folders=[stored.content_hash[:2]]) == 0


def test_a_bucket_that_is_away_costs_the_pages_only(settings: Settings) -> None:
    pages_at = settings.STORAGES["pages"]
    options = pages_at["OPTIONS"] | {"endpoint_url": "http://127.0.0.1:9"}
    settings.STORAGES = {**settings.STORAGES, "pages": {**pages_at, "OPTIONS": options}}
    assert store(b"one", b"two") == {}
    assert not StoredPage.objects.exists()
