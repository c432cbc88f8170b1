"""Batches of product pages, written in the main thread so that statements can be counted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import orjson
import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.audit import SYSTEM
from accounts.models import Client
from common.partitions import ensure_partitions
from common.urls import normalize_url, url_hash
from crawling import leases
from crawling.fetching import Failure, Page
from crawling.handover import hand_over
from crawling.models import CrawlJob, CrawlTask, Domain
from monitoring import runs, schedules
from monitoring.models import Change, Product, ProductHistory, Website
from notifications.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def website() -> Website:
    ensure_partitions("monitoring_producthistory", now=timezone.now())
    client = Client.objects.create(name="A", email="a@a.test", webhook_secret_current="whsec_eA==")
    return Website.objects.create(
        client=client,
        name="Shop",
        base_url="https://shop.example/",
        base_url_hash="x",
        status="active",
    )


def watch(website: Website, count: int) -> list[Product]:
    urls = [f"https://shop.example/p/{n}" for n in range(count)]
    return Product.objects.bulk_create(
        Product(
            website=website,
            approval="approved",
            original_url=url,
            normalized_url=normalize_url(url),
            url_hash=url_hash(normalize_url(url)),
        )
        for url in urls
    )


def body(price: str = "10.00", stock: str = "InStock", name: str = "Thing") -> bytes:
    offer = {"price": price, "priceCurrency": "EUR", "availability": stock}
    data = {"@type": "Product", "name": name, "offers": offer}
    return b'<script type="application/ld+json">' + orjson.dumps(data) + b"</script>"


def claim(website: Website) -> list[leases.Claim]:
    runs.start_monitoring(website, triggered_by="manual")
    return leases.claim_tasks({Domain.objects.get().pk: 1000})


def pages(
    claims: list[leases.Claim], default: bytes, special: Mapping[str, bytes] | None = None
) -> list[Page]:
    now = timezone.now()
    special = special or {}
    return [Page(c, now, status=200, url=c.url, body=special.get(c.url, default)) for c in claims]


def test_a_batch_costs_a_handful_of_statements_however_many_pages(website: Website) -> None:
    # One page more than the batch: the end of a run is another story.
    watch(website, 201)
    hand_over(pages(claim(website), body("10.00")))
    runs.start_monitoring(website, triggered_by="manual")
    domain = Domain.objects.get()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        claims = leases.claim_tasks({domain.pk: 200})
        changed = {claim.url: body("9.00") for claim in claims[:20]}
        assert hand_over(pages(claims, body("10.00"), changed)) == 200
    assert len(queries) / 200 < 0.2
    assert ProductHistory.objects.count() == 401
    assert Event.objects.filter(type="product.price_changed").count() == 20


def test_the_same_page_twice_makes_one_row_and_one_event(website: Website) -> None:
    watch(website, 1)
    hand_over(pages(claim(website), body("10.00")))
    batch = pages(claim(website), body("5.00"))
    assert hand_over(batch) == 1
    assert hand_over(batch) == 0
    assert ProductHistory.objects.count() == 2
    assert Change.objects.filter(kind="price_changed").count() == 1
    assert Event.objects.filter(type="product.price_changed").count() == 1


def test_an_unreadable_page_fails_its_task_and_changes_nothing(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("10.00", "InStock")))
    hand_over(pages(claim(website), b"<h1>Are you a robot?</h1>"))
    product.refresh_from_db()
    assert (str(product.current_price), product.current_stock_status) == ("10.0000", "in_stock")
    assert ProductHistory.objects.count() == 1
    task = CrawlTask.objects.filter(status="failed").get()
    assert task.error_category == "parse"


def test_a_failed_fetch_changes_nothing(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("10.00")))
    (one,) = claim(website)
    hand_over([Page(one, timezone.now(), Failure("timeout", "too slow", transient=True))])
    product.refresh_from_db()
    assert str(product.current_price) == "10.0000"
    retried = CrawlTask.objects.get(pk=one.id)
    assert (retried.status, retried.retry_count) == ("pending", 1)
    assert retried.scheduled_at > timezone.now() + dt.timedelta(seconds=50)


def test_a_rejected_product_is_not_written(website: Website) -> None:
    (product,) = watch(website, 1)
    claims = claim(website)
    Product.objects.filter(pk=product.pk).update(approval="rejected")
    hand_over(pages(claims, body("10.00")))
    assert not ProductHistory.objects.exists()


def test_history_lands_in_the_partition_of_its_month(website: Website) -> None:
    watch(website, 1)
    hand_over(pages(claim(website), body("10.00")))
    table = f"monitoring_producthistory_{timezone.now():%Y_%m}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        assert cursor.fetchone()[0] == 1


def test_a_name_that_postgres_cannot_hold_does_not_stop_the_batch(website: Website) -> None:
    watch(website, 3)
    strange = {"https://shop.example/p/1": body(name="a\u0000b" + "x" * 5000)}
    assert hand_over(pages(claim(website), body(), strange)) == 3
    assert CrawlTask.objects.filter(status="completed").count() == 3


def test_raw_data_is_kept_only_where_it_differs(website: Website) -> None:
    watch(website, 1)
    for price in ("10.00", "10.00", "11.00"):
        hand_over(pages(claim(website), body(price)))
    kept = ProductHistory.objects.order_by("crawl_timestamp").values_list(
        "raw_crawl_data", flat=True
    )
    assert [raw is not None for raw in kept] == [True, False, True]


def test_three_failed_runs_stop_the_website_and_say_so(website: Website) -> None:
    watch(website, 1)
    for _ in range(3):
        hand_over(pages(claim(website), b"<h1>nothing here</h1>"))
    website.refresh_from_db()
    assert website.status == "failed"
    assert Event.objects.filter(type="website.failed").count() == 1


def scheduled(website: Website, moment: str) -> CrawlJob | None:
    with time_machine.travel(moment, tick=False):
        return runs.run_scheduled(website.pk)


@pytest.fixture
def hourly(website: Website) -> Website:
    """Watched every hour on the hour; each run ends at once."""
    with time_machine.travel("2026-11-18T09:00:00Z", tick=False):
        website.created_at = timezone.now()
        website.periodic_task = schedules.create_schedule(website)
        website.save()
        schedules.set_schedule(website, cron="0 * * * *", zone="UTC", actor=SYSTEM)
    watch(website, 1)
    return website


def end_run(website: Website) -> None:
    CrawlTask.objects.update(status="completed")
    CrawlJob.objects.update(status="success")


def test_two_beats_make_one_run_per_slot_however_late_the_second_is(hourly: Website) -> None:
    first = scheduled(hourly, "2026-11-18T12:00:59.9Z")
    end_run(hourly)
    assert first is not None
    assert first.slot_at == dt.datetime(2026, 11, 18, 12, 0, tzinfo=dt.UTC)
    assert scheduled(hourly, "2026-11-18T12:01:00.1Z") is None
    assert scheduled(hourly, "2026-11-18T13:00:01Z") is not None


def test_slots_missed_in_an_outage_are_not_made_up_for(hourly: Website) -> None:
    scheduled(hourly, "2026-11-18T12:00:01Z")
    end_run(hourly)
    late = scheduled(hourly, "2026-11-20T07:30:00Z")
    end_run(hourly)
    assert late is not None
    assert late.slot_at == dt.datetime(2026, 11, 20, 7, 0, tzinfo=dt.UTC)
    assert scheduled(hourly, "2026-11-20T07:30:01Z") is None


def test_a_slow_run_keeps_the_next_one_away(hourly: Website) -> None:
    assert scheduled(hourly, "2026-11-18T12:00:30Z") is not None
    CrawlJob.objects.update(processed=1)
    assert scheduled(hourly, "2026-11-18T13:00:30Z") is None


def test_a_shop_that_never_answers_fails_and_the_client_hears_of_it(hourly: Website) -> None:
    hours = [f"2026-11-18T{hour}:00:30Z" for hour in (12, 13, 14)]
    assert all(scheduled(hourly, hour) is not None for hour in hours)
    assert scheduled(hourly, "2026-11-18T15:00:30Z") is None
    hourly.refresh_from_db()
    assert (hourly.status, hourly.last_crawl_status) == ("failed", "failed")
    assert Event.objects.filter(type="website.failed").count() == 1
    assert "did not answer" in CrawlJob.objects.filter(status="failed")[0].error_summary


def test_a_run_without_pages_of_its_own_says_nothing_about_the_shop(website: Website) -> None:
    watch(website, 1)
    runs.start_monitoring(website, triggered_by="manual")
    second = runs.start_monitoring(website, triggered_by="manual")
    assert second is not None
    assert (second.status, second.total) == ("cancelled", 0)
    website.refresh_from_db()
    assert website.last_successful_crawl_at is None


def test_a_price_that_grows_beyond_all_bounds_is_kept_without_a_percentage(
    website: Website,
) -> None:
    (product,) = watch(website, 1)
    for price in ("0.01", "1500000", "1500000"):
        hand_over(pages(claim(website), body(price)))
    product.refresh_from_db()
    assert product.current_price == 1500000
    assert Change.objects.get(kind="price_changed").pct is None


def test_the_reason_of_a_failed_run_is_in_its_summary(website: Website) -> None:
    watch(website, 2)
    hand_over(pages(claim(website), b"<h1>nothing here</h1>"))
    summary = CrawlJob.objects.get().error_summary
    assert summary.startswith("2 × parse: no product: ")
