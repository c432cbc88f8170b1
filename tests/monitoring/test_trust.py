"""Trust before alarm: what is hard to believe is looked at twice before anybody hears of it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import orjson
import pytest
from django.utils import timezone

from crawling import leases
from crawling.fetching import Failure, Page
from crawling.handover import hand_over
from crawling.models import CrawlJob, CrawlTask, Domain
from monitoring.models import AlertRule, Change, Product, ProductHistory, Website
from notifications.models import Event
from tests.monitoring.test_intake import body, claim, pages, watch, website

pytestmark = pytest.mark.django_db
__all__ = ["website"]


def second_look(content: bytes | None, status: int = 200) -> None:
    """The task that confirms, run before its minute is over."""
    waiting = CrawlTask.objects.filter(purpose="confirm", status="pending")
    assert waiting.update(scheduled_at=timezone.now()) > 0
    claims = leases.claim_tasks({Domain.objects.get().pk: 1000})
    if content is None:
        hand_over([gone(one, status) for one in claims])
    else:
        hand_over(pages(claims, content))


def gone(one: leases.Claim, status: int = 404) -> Page:
    failure = Failure("http", f"the shop answered {status}", transient=False)
    return Page(one, timezone.now(), failure, status=status, url=one.url)


def told(kind: str) -> int:
    return Event.objects.filter(type=f"product.{kind}").count()


def test_a_price_a_hundred_times_too_high_is_held_and_asked_for_again(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("19.99")))
    hand_over(pages(claim(website), body("1999.00")))
    product.refresh_from_db()
    assert product.current_price == Decimal("19.99")
    assert "factor of 100" in product.held_reason
    assert told("price_changed") == 0
    held = Change.objects.get(kind="price_changed")
    assert (held.status, held.note) == ("quarantined", product.held_reason)
    follow_up = CrawlTask.objects.get(purpose="confirm")
    assert dt.timedelta() < follow_up.scheduled_at - timezone.now() < dt.timedelta(seconds=61)
    assert [row.is_doubted for row in ProductHistory.objects.order_by("crawl_timestamp")] == [
        False,
        True,
    ]


def test_a_confirmed_price_is_told_once_with_the_change_that_was_held(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("19.99")))
    hand_over(pages(claim(website), body("1999.00")))
    held = Change.objects.get(kind="price_changed")
    second_look(body("1999.00"))
    product.refresh_from_db()
    assert (product.current_price, product.held_price) == (Decimal(1999), None)
    confirmed = Change.objects.get(kind="price_changed")
    assert (confirmed.pk, confirmed.status) == (held.pk, "confirmed")
    event = Event.objects.get(type="product.price_changed")
    assert str(held.pk) in event.body
    assert not ProductHistory.objects.filter(is_doubted=True).exists()
    # The third look is an ordinary one.
    hand_over(pages(claim(website), body("1999.00")))
    assert told("price_changed") == 1


def test_a_price_that_is_not_confirmed_is_dismissed_and_leaves_no_trace(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("100.00")))
    hand_over(pages(claim(website), body("1.00")))
    second_look(body("100.00"))
    product.refresh_from_db()
    assert product.current_price == product.lowest_price == 100
    assert {c.status for c in Change.objects.all()} == {"dismissed"}
    assert Event.objects.filter(type__startswith="product.").count() == 0
    assert ProductHistory.objects.filter(is_doubted=True).count() == 1


def test_a_second_look_that_sees_something_else_again_asks_for_no_third(website: Website) -> None:
    watch(website, 1)
    hand_over(pages(claim(website), body("100.00")))
    hand_over(pages(claim(website), body("1000.00")))
    second_look(body("10000.00"))
    assert not CrawlTask.objects.filter(purpose="confirm", status="pending").exists()
    assert told("price_changed") == 0


def test_stock_is_believed_although_the_price_is_held(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("100.00", "InStock")))
    hand_over(pages(claim(website), body("0.00", "OutOfStock")))
    product.refresh_from_db()
    assert product.current_price == 100
    assert product.current_stock_status == "out_of_stock"
    assert told("stock_changed") == 1


@pytest.mark.parametrize("status", [404, 410])
def test_a_product_is_delisted_by_the_second_look_and_relisted_when_it_is_back(
    website: Website, status: int
) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("100.00")))
    hand_over([gone(one, status) for one in claim(website)])
    product.refresh_from_db()
    assert (product.delisted_at, told("delisted")) == (None, 0)
    assert product.missing_at is not None
    second_look(None, status)
    product.refresh_from_db()
    assert product.delisted_at is not None
    assert product.current_price == 100
    assert told("delisted") == 1
    hand_over([gone(one, status) for one in claim(website)])
    assert told("delisted") == 1
    hand_over(pages(claim(website), body("100.00")))
    product.refresh_from_db()
    assert [product.delisted_at, product.missing_at] == [None, None]
    assert told("relisted") == 1


def test_a_page_that_was_missing_once_is_not_delisted(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("100.00")))
    hand_over([gone(one) for one in claim(website)])
    second_look(body("100.00"))
    hand_over([gone(one) for one in claim(website)])
    product.refresh_from_db()
    assert product.delisted_at is None
    assert told("delisted") + told("relisted") == 0


def test_a_redirect_to_the_front_page_counts_as_gone(website: Website) -> None:
    (product,) = watch(website, 1)
    hand_over(pages(claim(website), body("100.00")))
    front = b"<h1>Welcome</h1>"
    for one in claim(website):
        hand_over([Page(one, timezone.now(), status=200, url="https://shop.example/", body=front)])
    product.refresh_from_db()
    assert product.missing_at is not None


def test_a_sale_of_the_whole_shop_is_one_campaign_event_with_its_members(
    website: Website,
) -> None:
    watch(website, 40)
    hand_over(pages(claim(website), body("100.00")))
    claims = claim(website)
    for start in range(0, 40, 8):
        hand_over(pages(claims[start : start + 8], body("70.00")))
    event = Event.objects.get(type="website.campaign")
    assert '"members":40' in event.body
    assert told("price_changed") == 8
    assert told("new_low") == 8
    assert Change.objects.filter(kind="price_changed").count() == 40
    job = CrawlJob.objects.get(kind="monitor", changes__gt=0)
    assert Change.objects.filter(campaign_id=job.pk, kind="price_changed").count() == 40
    assert len(event.body) < 20_000


def test_a_few_changes_of_many_products_are_no_campaign(website: Website) -> None:
    watch(website, 40)
    hand_over(pages(claim(website), body("100.00")))
    special = {f"https://shop.example/p/{n}": body("70.00") for n in range(15)}
    hand_over(pages(claim(website), body("100.00"), special))
    assert told("price_changed") == 15
    assert not Event.objects.filter(type="website.campaign").exists()


def test_a_products_own_rule_comes_before_its_websites(website: Website) -> None:
    one, _ = watch(website, 2)
    AlertRule.objects.create(website=website, kind="percent", value=Decimal(20))
    AlertRule.objects.create(website=website, product=one, kind="percent", value=Decimal(5))
    hand_over(pages(claim(website), body("100.00")))
    hand_over(pages(claim(website), body("90.00")))
    change = Change.objects.get(kind="price_changed")
    assert (change.product_id, change.rule) == (one.pk, "percent ≥ 5.00")


def test_a_rule_rests_for_its_minutes_after_it_was_told(website: Website) -> None:
    watch(website, 1)
    rule = AlertRule.objects.create(
        website=website, kind="percent", value=Decimal(1), rearm_minutes=60
    )
    for price in ("100.00", "90.00", "81.00"):
        hand_over(pages(claim(website), body(price)))
    assert told("price_changed") == 1
    Change.objects.filter(alert_rule=rule).update(
        occurred_at=timezone.now() - dt.timedelta(minutes=61)
    )
    hand_over(pages(claim(website), body("81.00")))
    assert told("price_changed") == 2


def test_changed_words_are_told_only_where_a_rule_wants_any_change(website: Website) -> None:
    watch(website, 1)
    hand_over(pages(claim(website), body(name="Lamp")))
    hand_over(pages(claim(website), body(name="Desk lamp")))
    assert told("content_changed") == 0
    AlertRule.objects.create(website=website, kind="any")
    hand_over(pages(claim(website), body(name="Big desk lamp")))
    assert told("content_changed") == 1
    assert Product.objects.get().name == "Big desk lamp"


def test_a_run_with_lower_prices_and_empty_shelves_tells_of_both(website: Website) -> None:
    watch(website, 40)
    hand_over(pages(claim(website), body("100.00")))
    claims = claim(website)
    for start in range(0, 40, 8):
        hand_over(pages(claims[start : start + 8], body("70.00", "OutOfStock")))
    events = Event.objects.filter(type="website.campaign")
    told_of = {orjson.loads(event.body)["data"]["change"]["kind"]: event for event in events}
    assert set(told_of) == {"price_changed", "stock_changed"}
    for event in told_of.values():
        assert '"members":40' in event.body
    assert '"new":"out_of_stock"' in told_of["stock_changed"].body


def test_second_looks_are_no_campaign_however_many_are_confirmed(website: Website) -> None:
    watch(website, 40)
    hand_over(pages(claim(website), body("100.00")))
    special = {f"https://shop.example/p/{n}": body("1.00") for n in range(12)}
    hand_over(pages(claim(website), body("100.00"), special))
    second_look(body("1.00"))
    assert told("price_changed") == 12
    assert not Event.objects.filter(type="website.campaign").exists()


def test_a_confirmed_price_that_is_no_news_is_doubted_no_more(website: Website) -> None:
    watch(website, 1)
    AlertRule.objects.create(website=website, kind="percent", value=Decimal(100000))
    hand_over(pages(claim(website), body("19.99")))
    hand_over(pages(claim(website), body("1999.00")))
    assert ProductHistory.objects.filter(is_doubted=True).count() == 1
    assert not Change.objects.exists()
    second_look(body("1999.00"))
    assert not ProductHistory.objects.filter(is_doubted=True).exists()
