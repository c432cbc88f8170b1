"""What several workers do to the same product at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from accounts.audit import SYSTEM
from crawling.fetching import Page
from crawling.handover import hand_over
from crawling.models import CrawlTask
from monitoring import history, websites
from monitoring.models import Change, Product, ProductHistory, Website
from notifications.models import Event
from tests.monitoring.test_intake import body, claim, pages, watch, website

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["website"]


def hand_over_together(*batches: list[Page]) -> list[int]:
    ready = Barrier(len(batches))

    def work(batch: list[Page]) -> int:
        try:
            ready.wait(timeout=30)
            return hand_over(batch)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(batches)) as pool:
        return sorted(pool.map(work, batches))


def test_two_workers_with_the_same_pages_make_one_row_and_one_event_each(
    website: Website,
) -> None:
    watch(website, 5)
    hand_over(pages(claim(website), body("10.00")))
    claims = claim(website)
    batches = [pages(claims, body("5.00")), pages(list(reversed(claims)), body("5.00"))]
    assert hand_over_together(*batches) == [0, 5]
    assert ProductHistory.objects.count() == 10
    assert Change.objects.filter(kind="price_changed").count() == 5
    assert Event.objects.filter(type="product.price_changed").count() == 5


def test_pages_of_a_website_that_is_deleted_meanwhile_leave_nothing_behind(
    website: Website,
) -> None:
    watch(website, 3)
    hand_over(pages(claim(website), body("10.00")))
    on_their_way = pages(claim(website), body("5.00"))
    websites.delete_website(website, actor=SYSTEM)
    hand_over(on_their_way)
    history.delete_orphaned()
    assert not Product.objects.exists()
    assert not ProductHistory.objects.exists()
    assert not Change.objects.exists()
    assert not Event.objects.filter(type__startswith="product.").exists()
    assert not CrawlTask.objects.exclude(status__in=["cancelled", "completed"]).exists()
