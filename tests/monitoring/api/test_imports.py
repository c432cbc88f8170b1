from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.audit import SYSTEM
from accounts.models import Client
from common.http import check_target
from common.urls import normalize_url, url_hash
from crawling.models import CrawlJob, CrawlTask
from monitoring import registration, watching
from monitoring.models import Product, Website
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db
SITES = "/api/v1/websites/import"
PAGES = "/api/v1/products/import"
SHOP = "http://shop.localhost:8601"


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def shop(client_row: Client) -> Website:
    return WebsiteFactory.create(client=client_row, base_url=f"{SHOP}/")


def csv(api: Any, path: str, text: str) -> Any:
    return api.generic("POST", path, text.encode(), content_type="text/csv")


def results(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [line["result"] for line in answer.json()["items"]]


def test_a_list_of_websites_is_only_tried_unless_told_otherwise(api: Any) -> None:
    items = [{"base_url": f"{SHOP}/"}, {"base_url": "http://10.0.0.1/"}, {"base_url": SHOP}]
    answer = api.post(SITES, {"items": items})
    assert results(answer) == ["registered", "refused", "refused"]
    assert answer.json()["dry_run"] is True
    assert not Website.objects.exists()
    assert not CrawlJob.objects.exists()

    answer = api.post(f"{SITES}?dry_run=false", {"items": items})
    assert results(answer) == ["registered", "refused", "refused"]
    lines = answer.json()["items"]
    assert lines[0]["id"] == str(Website.objects.get().pk)
    assert lines[2]["detail"].startswith("base_url: This website is already registered")


def test_csv_names_its_columns_and_bad_cells_are_named(api: Any) -> None:
    text = (
        "\ufeffbase_url;name;crawl_frequency_minutes;seed_urls\n"
        f"{SHOP}/;My shop;360;{SHOP}/a {SHOP}/b\n"
        f"http://b.localhost:8601/;B;5;\n"
        ";nameless;;\n"
    )
    answer = csv(api, f"{SITES}?dry_run=false", text)
    assert results(answer) == ["registered", "refused", "refused"]
    details = [line["detail"] for line in answer.json()["items"]]
    assert details[1].startswith("crawl_frequency_minutes: ")
    assert details[2].startswith("base_url: ")
    website = Website.objects.get()
    assert (website.name, len(website.seed_urls)) == ("My shop", 2)


def test_websites_beyond_the_quota_are_refused_and_it_is_named(
    api: Any, client_row: Client
) -> None:
    client_row.max_websites = 1
    client_row.save()
    items = [{"base_url": f"{SHOP}/"}, {"base_url": "http://b.localhost:8601/"}]
    answer = api.post(SITES, {"items": items})
    assert results(answer) == ["registered", "refused"]
    assert "max_websites" in answer.json()["items"][1]["detail"]


@pytest.mark.parametrize(
    "body", [{}, {"items": []}, {"items": [1]}, {"items": "x"}, {"items": [], "x": 1}, []]
)
@pytest.mark.parametrize("path", [SITES, PAGES])
def test_a_list_that_is_none_is_refused(api: Any, path: str, body: Any) -> None:
    assert api.post(path, body).status_code == 400


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n1,2\n", "url\n\x00", '"'])
def test_csv_that_is_none_is_refused_or_judged_line_by_line(api: Any, text: str) -> None:
    assert csv(api, PAGES, text).status_code in (200, 400)
    assert api.generic("POST", PAGES, b"\xff\xfe", content_type="text/csv").status_code == 400
    assert not Product.objects.exists()


def test_pages_are_watched_and_their_baseline_is_crawled(api: Any, shop: Website) -> None:
    known = ProductFactory.create(website=shop, pending=True, original_url=f"{SHOP}/p/1")
    watched = ProductFactory.create(website=shop, approved=True, original_url=f"{SHOP}/p/2")
    text = f"{SHOP}/p/1\n{SHOP}/p/2\n{SHOP}/p/3\nhttp://other.localhost:8601/p\nnonsense\n"
    before = [*results(csv(api, PAGES, text))]
    assert Product.objects.count() == 2
    assert before == ["watched", "unchanged", "watched", "refused", "refused"]
    assert results(csv(api, f"{PAGES}?dry_run=false", text)) == before
    assert Product.objects.filter(approval="approved").count() == 3
    assert set(CrawlTask.objects.values_list("url", flat=True)) == {f"{SHOP}/p/1", f"{SHOP}/p/3"}
    shop.refresh_from_db()
    assert shop.status == "active"
    for product in (known, watched):
        product.refresh_from_db()
        assert product.approval == "approved"


def test_pages_may_wait_for_review(api: Any, shop: Website) -> None:
    items = {"items": [{"url": f"{SHOP}/p/1"}]}
    assert results(api.post(f"{PAGES}?dry_run=false&approve=false", items)) == ["candidate"]
    assert Product.objects.get().approval == "pending"


def test_a_full_quota_refuses_the_pages_and_is_named(
    api: Any, shop: Website, client_row: Client
) -> None:
    client_row.max_products_per_website = 1
    client_row.save()
    answer = csv(api, f"{PAGES}?dry_run=false", f"{SHOP}/p/1\n{SHOP}/p/2\n")
    assert results(answer) == ["refused", "refused"]
    assert "max_products_per_website" in answer.json()["items"][0]["detail"]


def test_one_page_is_watched(api: Any, shop: Website) -> None:
    answer = api.post("/api/v1/products", {"url": f"{SHOP}/p/1"})
    assert answer.status_code == 201
    product = Product.objects.get()
    assert answer["Location"] == f"/api/v1/products/{product.pk}"
    assert answer.json()["approval"] == "approved"
    assert CrawlTask.objects.get().object_id == product.pk
    again = api.post("/api/v1/products", {"url": f"{SHOP}/p/1/"})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "status", "attr"),
    [
        ({}, 400, "url"),
        ({"url": "nonsense"}, 400, "url"),
        ({"url": "http://unknown.localhost:8601/p"}, 400, "url"),
        ({"url": f"{SHOP}/p", "website": "0198c1f4-7a10-7c3e-9d21-5b6f0a1e2c3d"}, 400, "website"),
        ({"url": f"{SHOP}/p", "price": 1}, 400, "price"),
    ],
)
def test_a_page_that_cannot_be_watched_is_named(
    api: Any, shop: Website, body: dict[str, Any], status: int, attr: str
) -> None:
    answer = api.post("/api/v1/products", body)
    assert answer.status_code == status
    assert answer.json()["errors"][0]["attr"] == attr
    assert not Product.objects.exists()


def test_reading_keys_and_other_clients_cannot(reader: Any, stranger: Any, shop: Website) -> None:
    assert reader.post("/api/v1/products", {"url": f"{SHOP}/p/1"}).status_code == 403
    assert reader.post(SITES, {"items": [{"base_url": SHOP}]}).status_code == 403
    assert stranger.post("/api/v1/products", {"url": f"{SHOP}/p/1"}).status_code == 400


def test_the_command_shows_first_and_then_does_it(
    client_row: Client, shop: Website, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "urls.csv"
    file.write_text(f"url,note\n{SHOP}/p/1,x\nnonsense,\n")
    call_command("import_urls", str(file), client=client_row.email)
    assert "Nothing was changed" in capsys.readouterr().out
    assert not Product.objects.exists()
    call_command("import_urls", str(file), client=client_row.email, apply=True)
    assert "1 taken, 1 refused." in capsys.readouterr().out
    assert Product.objects.get().approval == "approved"
    with pytest.raises(CommandError, match="No client"):
        call_command("import_urls", str(file), client="nobody@example.com")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_urls", str(tmp_path / "none"), client=client_row.email)


def test_a_long_list_costs_as_many_statements_as_a_short_one(
    client_row: Client, shop: Website
) -> None:
    WebsiteFactory.create(client=client_row, base_url="http://b.localhost:8601/")
    counts = []
    for first, count in ((0, 2), (100, 60)):
        urls = [f"{SHOP}/p/{number}" for number in range(first, first + count)]
        with CaptureQueriesContext(connection) as asked:
            lines = watching.import_urls(client_row, urls, dry_run=False, actor=SYSTEM)
        assert {line.result for line in lines} == {"watched"}
        counts.append(len(asked))
    assert counts[1] <= counts[0] + 2


def test_a_page_named_twice_is_one_product_and_an_alias_is_known(api: Any, shop: Website) -> None:
    ProductFactory.create(
        website=shop,
        pending=True,
        original_url=f"{SHOP}/p/1",
        canonical_hash=url_hash(normalize_url(f"{SHOP}/p/own")),
    )
    text = f"{SHOP}/p/2\n{SHOP}/p/2\n{SHOP}/p/own\n"
    path = f"{PAGES}?dry_run=false&approve=false"
    assert results(csv(api, path, text)) == ["candidate", "known", "known"]
    assert Product.objects.count() == 2


def test_no_row_is_locked_while_addresses_are_looked_up(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = []
    real = check_target

    def look_up(url: str) -> str:
        deep.append(len(connection.savepoint_ids))
        return real(url)

    monkeypatch.setattr(registration, "check_target", look_up)
    outside = len(connection.savepoint_ids)
    assert results(api.post(SITES, {"items": [{"base_url": f"{SHOP}/"}]})) == ["registered"]
    assert deep == [outside]
