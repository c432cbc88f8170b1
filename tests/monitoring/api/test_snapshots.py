from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.test import Client as Browser
from pytest_django import Settings

from accounts.models import Client
from crawling import pages
from crawling.models import StoredPage
from crawling.pages import Content, Storing
from monitoring.models import Product, Website
from tests.factories.accounts import UserFactory, api_for
from tests.factories.crawling import JobFactory, TaskFactory
from tests.factories.monitoring import ChangeFactory, HistoryFactory, ProductFactory

pytestmark = pytest.mark.django_db
BODY = b"<script>alert(1)</script>"
DIGEST = pages.hash_of(BODY)
PAGE = f"/api/v1/stored-pages/{DIGEST}"


@pytest.fixture(autouse=True)
def page_files(settings: Settings, tmp_path: Path) -> None:
    local = {
        "BACKEND": "crawling.page_storage.LocalPages",
        "OPTIONS": {"location": tmp_path},
    }
    settings.STORAGES = {**settings.STORAGES, "pages": local}
    Storing([Content(DIGEST, BODY, "text/html")]).record()


@pytest.fixture
def product(website: Website) -> Product:
    return ProductFactory.create(website=website, approved=True)


def test_snapshots_lead_to_the_pages_that_are_kept(reader: Any, product: Product) -> None:
    HistoryFactory.create(product=product, page_hash="f" * 64)
    HistoryFactory.create(product=product, page_hash=DIGEST)
    items = reader.get(f"/api/v1/products/{product.pk}/snapshots").json()["items"]
    assert [(item["page_hash"], item["page_url"]) for item in items] == [
        (DIGEST, PAGE),
        ("f" * 64, None),
    ]


def test_a_page_comes_as_a_file_that_no_browser_runs(reader: Any, product: Product) -> None:
    Product.objects.filter(pk=product.pk).update(page_hash=DIGEST)
    answer = reader.get(PAGE)
    assert (answer.status_code, answer.content) == (200, BODY)
    assert answer["Content-Type"].startswith("text/plain")
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Security-Policy"].startswith("sandbox")
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_page_that_proves_a_change_or_was_fetched_for_a_product_is_ones_own(
    client_row: Client, reader: Any, website: Website
) -> None:
    assert reader.get(PAGE).status_code == 404
    change = ChangeFactory.create(product__website=website, page_hash=DIGEST)
    assert reader.get(PAGE).status_code == 200
    change.delete()
    stored, job = StoredPage.objects.get(), JobFactory.create(client=client_row)
    task = TaskFactory.create(job=job, stored_page=stored, purpose="discover")
    assert reader.get(PAGE).status_code == 404
    task.purpose = "product"
    task.save()
    assert reader.get(PAGE).status_code == 200


def test_others_see_nothing_and_operators_everything(
    client: Browser, stranger: Any, product: Product
) -> None:
    Product.objects.filter(pk=product.pk).update(page_hash=DIGEST)
    assert client.get(PAGE).status_code == 401
    assert stranger.get(PAGE).status_code == 404
    assert api_for(None).get(PAGE).status_code == 200
    assert api_for(None).get(PAGE[:-1] + "g").status_code == 404


def test_a_page_whose_file_is_gone_is_not_found(reader: Any, product: Product) -> None:
    Product.objects.filter(pk=product.pk).update(page_hash=DIGEST)
    storages["pages"].delete(pages.key_of(DIGEST))
    assert reader.get(PAGE).status_code == 404


def test_the_console_lists_pages_and_offers_them_as_files(client: Browser) -> None:
    stored = StoredPage.objects.get()
    base = "/admin/crawling/storedpage/"
    assert client.get(f"{base}{stored.pk}/download").status_code == 302
    client.force_login(UserFactory.create(is_staff=True))
    assert client.get(f"{base}{stored.pk}/download").status_code == 403
    client.force_login(UserFactory.create(superuser=True))
    assert DIGEST in client.get(base).content.decode()
    shown = client.get(f"{base}{stored.pk}/change/").content.decode()
    assert f"{stored.pk}/download" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert BODY.decode() not in shown
    answer = client.get(f"{base}{stored.pk}/download")
    assert answer.content == BODY
    assert answer["Content-Security-Policy"].startswith("sandbox")
