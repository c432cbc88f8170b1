"""A page that failed, was refused, is gone or says nothing moves neither price nor stock."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from django.utils import timezone

from crawling.fetching import Page, judge
from crawling.handover import hand_over
from crawling.models import CrawlTask
from monitoring.models import Change, Product, ProductHistory, Website
from notifications.models import Event
from tests.monitoring.test_intake import body, claim, pages, watch, website

pytestmark = pytest.mark.django_db
__all__ = ["website"]
CAPTURED = Path(__file__).parent.parent / "pages"
EMPTY = b""


def captured(name: str) -> bytes:
    return (CAPTURED / name / "page.html").read_bytes()


def come_in(website: Website, status: int, content: bytes) -> None:
    """As a fetch would bring it, judged by the answer first."""
    hand_over(
        [
            Page(
                one,
                timezone.now(),
                judge(status, content),
                status=status,
                url=one.url,
                body=content,
                headers={"Content-Type": "text/html"},
            )
            for one in claim(website)
        ]
    )


@pytest.mark.parametrize("status", [301, 401, 403, 404, 410, 418, 429, 500, 503])
def test_an_answer_that_is_no_page_moves_nothing(website: Website, status: int) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("10.00", "InStock")))
    come_in(website, status, body("1.00", "OutOfStock"))
    assert_untouched(product)


@pytest.mark.parametrize(
    "content",
    [
        captured("soft-404"),
        captured("bot-wall"),
        captured("category-list"),
        captured("empty"),
        EMPTY,
        b"\xff\xfe\x00\x00" * 50,
        b"<html><body><div id='root'></div><script src='/app.js'></script>",
        b'<script type="application/ld+json">{"@type":"Product","offers":{"price":',
        body("10.00", "OutOfStock").replace(b'"10.00"', b'"call us"')[:40],
    ],
    ids=["soft 404", "bot wall", "list", "blank", "empty", "binary", "shell", "cut", "cut early"],
)
def test_a_page_that_is_no_product_moves_nothing(website: Website, content: bytes) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("10.00", "InStock")))
    come_in(website, 200, content)
    assert_untouched(product)
    assert CrawlTask.objects.exclude(error_message="").exists()


def assert_untouched(product: Product) -> None:
    product.refresh_from_db()
    assert (product.current_price, product.current_stock_status) == (Decimal(10), "in_stock")
    assert product.delisted_at is None
    assert ProductHistory.objects.count() == 1
    assert not Change.objects.exists()
    assert not Event.objects.filter(type__startswith="product.").exists()
