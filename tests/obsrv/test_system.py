"""The page of the system: what it shows, and retention with a look first."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from accounts.models import AuditEntry
from monitoring import history
from obsrv import queues, system
from obsrv.schedules import ensure_schedules
from tests.crawling.work import stored_page
from tests.factories.accounts import UserFactory
from tests.factories.monitoring import HistoryFactory, ProductFactory, WebsiteFactory
from tests.factories.static import static_root  # noqa: F401
from tests.obsrv.console_rows import browser_of

pytestmark = pytest.mark.django_db
SYSTEM, QUEUES, RETENTION = "/admin/system/", "/admin/system/queues/", "/admin/system/retention/"


@pytest.fixture
def browser() -> Browser:
    return browser_of(UserFactory.create(superuser=True))


def text_of(browser: Browser, page: str, **query: str) -> str:
    answer: Any = browser.get(page, query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_page_shows_health_partitions_and_storage(browser: Browser, beats: Any) -> None:
    history.make_months()
    website = WebsiteFactory.create(active=True, retention_days=90)
    HistoryFactory.create(product=ProductFactory.create(website=website, approved=True))
    text = text_of(browser, SYSTEM)
    assert "no heartbeat" in text
    assert "monitoring_product" in text
    now = timezone.now()
    assert f"{now:%Y-%m}" in text
    this_month = next(
        one
        for one in system.partitions()
        if one.month and (one.month.year, one.month.month) == (now.year, now.month)
    )
    assert this_month.month is not None
    after = this_month.month.plus(1).first_moment + dt.timedelta(days=90)
    assert this_month.drops_at == after
    assert f"{after:%Y-%m-%d}" in text


def test_stored_pages_are_counted_while_few_and_estimated_when_many(monkeypatch: Any) -> None:
    for _ in range(4):
        stored_page()
    found = system.storage()
    assert (found.pages, found.page_bytes) == (4, 4)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE crawling_storedpage")
    monkeypatch.setattr(system, "NEWEST_PAGES", 2)
    found = system.storage()
    assert (found.pages, found.page_bytes) == (4, 4)


def test_a_queue_without_a_worker_is_named(browser: Browser) -> None:
    queues.forget()
    text = text_of(browser, QUEUES)
    assert text.count("no worker") == 3
    assert "waiting" in text


def test_a_broker_that_is_away_is_said(browser: Browser, monkeypatch: Any) -> None:
    from celery import current_app

    queues.forget()
    monkeypatch.setattr(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app.conf, "broker_read_url", "redis://127.0.0.1:1/0")
    assert "the broker does not answer" in text_of(browser, QUEUES)


def test_retention_is_looked_at_first_and_then_begun(browser: Browser, monkeypatch: Any) -> None:
    ensure_schedules()
    website = WebsiteFactory.create(name="Lamps", active=True, retention_days=30)
    product = ProductFactory.create(website=website, approved=True)
    old = timezone.now() - dt.timedelta(days=31)
    HistoryFactory.create(product=product, crawl_timestamp=old)
    assert "Lamps: rows past 30 days" in text_of(browser, RETENTION)
    sent: list[Any] = []
    monkeypatch.setattr(
        "monitoring.tasks.apply_retention.apply_async", lambda **how: sent.append(how)
    )
    answer = browser.post(RETENTION, follow=True)
    assert "A worker has begun" in answer.content.decode()
    assert [how["ignore_result"] for how in sent] == [False]
    entry = AuditEntry.objects.get(verb="run")
    assert (entry.actor_kind, entry.object_name.split(":")[:2]) == (
        "operator",
        ["obsrv", " retention"],
    )


def test_a_missing_schedule_is_said(browser: Browser) -> None:
    answer = browser.post(RETENTION, follow=True)
    assert "run manage.py ensure_schedules" in answer.content.decode()


def test_nothing_to_remove_is_no_button(browser: Browser) -> None:
    text = text_of(browser, RETENTION)
    assert "Nothing is past its retention" in text
    assert "Remove it now" not in text
