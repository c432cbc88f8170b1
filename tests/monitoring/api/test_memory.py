"""What a product remembers: series, charts, months, explanations, files, other shops."""

from __future__ import annotations

import csv
import datetime as dt
import io
import zipfile
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import orjson
import pytest
from django.utils import timezone

from accounts.models import Client
from common.partitions import ensure_partitions
from crawling.models import CrawlTask
from monitoring import retention, series
from monitoring.models import Change, Product, ProductHistory, ProductMatch, Website
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.monitoring import (
    ChangeFactory,
    HistoryFactory,
    ProductFactory,
    WebsiteFactory,
)

pytestmark = pytest.mark.django_db
PRODUCTS = "/api/v1/products"
NOON = dt.datetime(2026, 11, 11, 12, tzinfo=dt.UTC)


@pytest.fixture
def api(client_row: Client) -> Any:
    return api_for(client_row)


@pytest.fixture
def product(website: Website) -> Product:
    ensure_partitions("monitoring_producthistory", now=NOON)
    return ProductFactory.create(website=website, approved=True, name="<b>Lamp</b> & co")


def looks(product: Product, *rows: tuple[dt.datetime, str, str]) -> None:
    for at, price, stock in rows:
        HistoryFactory.create(
            product=product, crawl_timestamp=at, price=Decimal(price), stock_status=stock
        )


def day(number: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2026, 11, number, hour, tzinfo=dt.UTC)


SPAN = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-30T00:00:00Z"}


def test_days_are_drawn_together_by_the_database(api: Any, product: Product) -> None:
    looks(
        product,
        (day(2, 1), "10", "in_stock"),
        (day(2, 9), "14", "in_stock"),
        (day(3, 1), "12", "out_of_stock"),
    )
    HistoryFactory.create(product=product, crawl_timestamp=day(3, 5), price=0, is_doubted=True)
    body = api.get(f"{PRODUCTS}/{product.pk}/history", SPAN | {"interval": "day"}).json()
    third, second = body["items"]
    assert (second["start"], second["checks"]) == ("2026-11-02T00:00:00Z", 2)
    assert [second[f"{name}_price"] for name in ("min", "max", "avg", "first", "last")] == [
        "10.00",
        "14.00",
        "12.00",
        "10.00",
        "14.00",
    ]
    assert (third["stock_status"], third["min_price"]) == ("out_of_stock", "12.00")
    week = api.get(f"{PRODUCTS}/{product.pk}/history", SPAN | {"interval": "week"}).json()
    assert [item["start"] for item in week["items"]] == ["2026-11-02T00:00:00Z"]
    assert api.get(f"{PRODUCTS}/{product.pk}/history", {"interval": "hour"}).status_code == 400


def test_the_chart_has_steps_bands_and_escaped_names(api: Any, product: Product) -> None:
    looks(
        product,
        (day(2), "10", "in_stock"),
        (day(5), "8", "out_of_stock"),
        (day(9), "8", "in_stock"),
    )
    answer = api.get(f"{PRODUCTS}/{product.pk}/chart.svg", SPAN)
    assert answer["Content-Type"] == "image/svg+xml"
    picture = ET.fromstring(answer.content)
    ns = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{ns}path")) == 1
    assert len([r for r in picture.findall(f"{ns}rect") if r.get("class") == "o"]) == 1
    assert "<b>" not in answer.content.decode()
    assert "min 8.00 · avg 8.67 · max 10.00" in answer.content.decode()


def test_an_empty_chart_says_so(api: Any, product: Product) -> None:
    assert b"No price in this time." in api.get(f"{PRODUCTS}/{product.pk}/chart.svg").content


def test_a_month_is_kept_with_each_price_as_long_as_it_stood(api: Any, product: Product) -> None:
    looks(product, (day(1), "10", "in_stock"), (day(11), "40", "out_of_stock"))
    retention.apply(now=day(30))
    (month,) = api.get(f"{PRODUCTS}/{product.pk}/statistics").json()["items"]
    assert (month["month"], month["total_snapshots"]) == ("2026-11-01", 2)
    assert (month["min_price"], month["max_price"], month["avg_price"]) == (
        "10.00",
        "40.00",
        "25.00",
    )
    assert Decimal(month["time_weighted_avg_price"]) > 10


def test_silence_is_explained(api: Any, product: Product) -> None:
    Product.objects.filter(pk=product.pk).update(
        current_price=Decimal("100.50"), notified_price=Decimal(100), notified_currency="EUR"
    )
    HistoryFactory.create(product=product, price=Decimal("100.50"))
    body = api.get(f"{PRODUCTS}/{product.pk}/why").json()
    assert body["verdict"] == "silent"
    assert "100.00 → 100.50 (+0.50 %)" in body["summary"]
    assert body["rules"] == ["percent ≥ 1.00 (the website's threshold)"]
    assert body["baseline"]["price"] == "100.00"


def test_a_held_price_and_a_change_are_explained(api: Any, product: Product) -> None:
    row = HistoryFactory.create(product=product)
    ChangeFactory.create(product=product, occurred_at=row.crawl_timestamp)
    body = api.get(f"{PRODUCTS}/{product.pk}/why").json()
    assert (body["verdict"], body["change"]["kind"]) == ("confirmed", "price_changed")
    Product.objects.filter(pk=product.pk).update(held_reason="the price is zero")
    assert api.get(f"{PRODUCTS}/{product.pk}/why").json()["verdict"] == "held"


def test_a_change_that_is_dismissed_lets_the_held_price_go(api: Any, product: Product) -> None:
    Product.objects.filter(pk=product.pk).update(held_price=1, held_reason="too low")
    change = ChangeFactory.create(product=product, status="quarantined")
    body = api.post(f"/api/v1/changes/{change.pk}/dismiss", {"note": "A test."}).json()
    assert (body["status"], body["note"]) == ("dismissed", "A test.")
    product.refresh_from_db()
    assert (product.held_price, product.held_reason) == (None, "")
    again = api.post(f"/api/v1/changes/{change.pk}/dismiss", {})
    assert again.json()["note"] == "A test."


def test_a_product_rests_is_crawled_and_is_deleted(api: Any, product: Product) -> None:
    HistoryFactory.create(product=product)
    url = f"{PRODUCTS}/{product.pk}"
    assert api.patch(url, {"is_active": False}).json()["is_active"] is False
    assert api.post(f"{url}/crawl").status_code == 202
    assert CrawlTask.objects.get().object_id == product.pk
    assert api.delete(url).status_code == 204
    assert api.get(url).status_code == 404
    assert api.patch(url, {"is_active": True}).status_code == 404


def test_a_product_without_a_stored_page_cannot_be_read_again(api: Any, product: Product) -> None:
    answer = api.post(f"{PRODUCTS}/{product.pk}/reparse")
    assert (answer.status_code, answer.json()["code"]) == (409, "INVALID_STATE")


def test_many_products_are_paused_after_a_dry_run(api: Any, website: Website) -> None:
    ProductFactory.create_batch(3, website=website, approved=True)
    body = {"action": "pause", "filter": {"website": str(website.pk)}}
    tried = api.post(f"{PRODUCTS}/bulk", body | {"dry_run": True}).json()
    assert (tried["done"], Product.objects.filter(is_active=False).count()) == (3, 0)
    assert api.post(f"{PRODUCTS}/bulk", body).json()["done"] == 3
    assert {line["result"] for line in api.post(f"{PRODUCTS}/bulk", body).json()["items"]} == {
        "unchanged"
    }
    theirs = ProductFactory.create(approved=True)
    lines = api.post(f"{PRODUCTS}/bulk", {"action": "delete", "ids": [str(theirs.pk)]}).json()
    assert lines["items"][0]["result"] == "not_found"


def test_words_find_products_by_name_brand_and_description(api: Any, website: Website) -> None:
    lamp = ProductFactory.create(website=website, name="Desk Lamp", brand="Bright")
    ProductFactory.create(website=website, name="Chair", description="No lights here")
    for text in ("lamp", "LAMP desk", "bri", "lamp bright"):
        found = api.get(PRODUCTS, {"q": text}).json()["items"]
        assert [item["id"] for item in found] == [str(lamp.pk)], text
    assert api.get(PRODUCTS, {"q": "lamp & | ! :* ("}).status_code == 200
    assert len(api.get(PRODUCTS, {"q": "light"}).json()["items"]) == 1


def test_products_are_filtered_by_rating_category_and_domain(api: Any, client_row: Client) -> None:
    shop = WebsiteFactory.create(client=client_row, base_url="https://www.lamps.example/")
    lamp = ProductFactory.create(website=shop, rating=Decimal("4.5"), category="Light > Desk")
    ProductFactory.create(website__client=client_row, rating=Decimal(2))
    longer = WebsiteFactory.create(client=client_row, base_url="https://lamps.example.org/")
    ProductFactory.create(website=longer)
    for query in ({"rating_min": "4"}, {"category": "light > desk"}, {"domain": "lamps.example"}):
        found = api.get(PRODUCTS, query).json()["items"]
        assert [item["id"] for item in found] == [str(lamp.pk)], query


def export(api: Any, **body: Any) -> bytes:
    made = api.post("/api/v1/exports", body)
    assert made.status_code == 201, made.content
    return b"".join(api.get(made.json()["file_url"]).streaming_content)


def test_a_csv_of_products_cannot_be_taken_for_formulas(api: Any, product: Product) -> None:
    evil = '=HYPERLINK("https://evil.example")'
    Product.objects.filter(pk=product.pk).update(name=evil, brand="+1", sku="-x")
    rows = list(csv.DictReader(io.StringIO(export(api, kind="products", format="csv").decode())))
    assert [rows[0][name] for name in ("name", "brand", "sku")] == [f"'{evil}", "'+1", "'-x"]
    assert rows[0]["price"] == "19.9000"


def test_history_is_exported_as_a_spreadsheet(api: Any, product: Product) -> None:
    looks(product, (day(2), "10", "in_stock"), (day(3), "11", "in_stock"))
    content = export(api, kind="history", format="xlsx", filter=SPAN)
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheet = ET.fromstring(book.read("xl/worksheets/sheet1.xml"))
    ns = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    assert len(sheet.findall(f".//{ns}row")) == 3


def test_changes_are_exported_as_lines_of_json(
    api: Any, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitoring.exporting.PIECE", 2)
    at = timezone.now()
    for _ in range(5):
        ChangeFactory.create(product=product, occurred_at=at)
    ChangeFactory.create()
    lines = export(api, kind="changes", format="ndjson").splitlines()
    assert len({orjson.loads(line)["id"] for line in lines}) == len(lines) == 5


def test_one_product_is_compared_across_shops(api: Any, client_row: Client) -> None:
    prices = {"cheap": "80", "mine": "100", "dear": "120"}
    offers = {
        name: ProductFactory.create(
            website__client=client_row,
            approved=True,
            gtin="4006381333931",
            current_price=Decimal(price),
        )
        for name, price in prices.items()
    }
    ProductFactory.create(
        website__client=ClientFactory.create(), approved=True, gtin="4006381333931"
    )
    body = api.post(f"{PRODUCTS}/compare", {"product": str(offers["mine"].pk)}).json()
    assert [o["id"] for o in body["offers"]] == [
        str(offers[name].pk) for name in ("cheap", "mine", "dear")
    ]
    assert (body["matched_by"], body["position"], body["spread_pct"]) == ("gtin", 2, "50.00")
    assert body["cheapest_id"] == str(offers["cheap"].pk)
    assert api.get(body["chart_url"]).status_code == 200


def test_alike_names_are_only_proposed_until_somebody_confirms(
    api: Any, client_row: Client
) -> None:
    one = ProductFactory.create(website__client=client_row, approved=True, name="Acme Desk Lamp 9")
    two = ProductFactory.create(website__client=client_row, approved=True, name="Desk lamp 9 ACME")
    ask = {"product": str(one.pk), "propose": True}
    body = api.post(f"{PRODUCTS}/compare", ask).json()
    assert (len(body["offers"]), len(body["proposed"])) == (1, 1)
    match = ProductMatch.objects.get()
    answer = api.patch(f"/api/v1/product-matches/{match.pk}", {"status": "confirmed"})
    assert answer.json()["status"] == "confirmed"
    body = api.post(f"{PRODUCTS}/compare", ask).json()
    assert {o["id"] for o in body["offers"]} == {str(one.pk), str(two.pk)}
    assert Change.objects.count() == 0


def test_a_chart_of_very_many_checks_keeps_its_peaks_and_stays_small(product: Product) -> None:
    begin = day(2)
    rows = ProductHistory.objects.filter(product_id=product.pk)
    many = [
        ProductHistory(
            product_id=product.pk,
            website_id=product.website_id,
            crawl_timestamp=begin + dt.timedelta(minutes=n),
            price=Decimal(99) if n == 4321 else Decimal(10),
            currency="EUR",
            stock_status="in_stock",
        )
        for n in range(1, 6000)
    ]
    ProductHistory.objects.bulk_create(many)
    assert rows.count() > series.MOST_POINTS
    found = series.points(product.pk, day(1), day(10))
    assert len(found) <= series.MOST_POINTS
    assert max(point.price for point in found if point.price) == 99
    assert found[-1].at == many[-1].crawl_timestamp
    assert [point.at for point in found] == sorted(point.at for point in found)
    few = series.points(product.pk, begin + dt.timedelta(minutes=1), begin + dt.timedelta(hours=1))
    assert len(few) == 60


def test_a_chart_leaves_out_what_xml_cannot_hold(api: Any, product: Product) -> None:
    looks(product, (day(2), "10", "in_stock"))
    Product.objects.filter(pk=product.pk).update(name="Desk\ufffe\uffff\x01lamp")
    svg = api.get(f"{PRODUCTS}/{product.pk}/chart.svg", SPAN).content
    assert "Desk" in "".join(ET.fromstring(svg).itertext())
