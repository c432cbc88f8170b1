from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuditEntry
from tests.factories.accounts import UserFactory
from tests.factories.crawling import CrawlErrorFactory, DomainFactory, JobFactory, TaskFactory
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>'
ADMIN = "/admin/crawling"
PACE = {
    "crawl_delay_seconds": "2.5",
    "rate_limit_rps": "",
    "max_concurrent_requests": "1",
    "respect_robots": "on",
    "user_agent": "",
    "is_active": "on",
    "blocked_reason": "",
    "parser_name": "generic",
    "proxy_rotation": "lru",
    "maintenance_start": "",
    "maintenance_end": "",
    "maintenance_timezone": "UTC",
    "breaker_threshold": "5",
    "breaker_timeout_s": "300",
    "domain_proxies-TOTAL_FORMS": "0",
    "domain_proxies-INITIAL_FORMS": "0",
}


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def press(browser: Browser, model: str, action: str, row: Any) -> str:
    chosen = {"action": action, "_selected_action": [str(row.pk)]}
    return browser.post(f"{ADMIN}/{model}/", chosen, follow=True).content.decode()


@pytest.mark.parametrize("model", ["crawljob", "crawltask", "crawlerror", "domain"])
def test_lists_and_pages_open_and_escape_what_crawled_pages_say(
    browser: Browser, model: str
) -> None:
    domain = DomainFactory.create(robots_body=HOSTILE, blocked_reason=HOSTILE)
    job = JobFactory.create(error_summary=HOSTILE, total=4, processed=1, running=True)
    task = TaskFactory.create(
        job=job, domain=domain, url="javascript:alert(1)", error_message=HOSTILE
    )
    error = CrawlErrorFactory.create(task=task, message=HOSTILE, trace=HOSTILE)
    row = {"crawljob": job, "crawltask": task, "crawlerror": error, "domain": domain}[model]
    for page in (f"{ADMIN}/{model}/", f"{ADMIN}/{model}/{row.pk}/change/"):
        answer = browser.get(page)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert "<script>alert(1)" not in text
        assert not re.search(r"href=[\"']javascript:alert", text)
    assert "1\u00a0/\u00a04" in browser.get(f"{ADMIN}/crawljob/").content.decode()


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("model", ["crawljob", "crawltask", "crawlerror", "domain"])
def test_a_long_list_asks_no_more_than_a_short_one(
    browser: Browser, model: str, count: int
) -> None:
    CrawlErrorFactory.create_batch(count)
    browser.get(f"{ADMIN}/{model}/")
    with CaptureQueriesContext(connection) as queries:
        browser.get(f"{ADMIN}/{model}/")
    assert len(queries) <= 8
    if model != "domain":
        assert not [q for q in queries if "COUNT(" in q["sql"]]


def test_a_job_is_cancelled_and_a_finished_one_says_why_not(browser: Browser) -> None:
    live, done = JobFactory.create(), JobFactory.create(finished=True)
    assert "1 cancelled" in press(browser, "crawljob", "cancel", live)
    assert "cannot be cancelled" in press(browser, "crawljob", "cancel", done)
    live.refresh_from_db()
    assert live.status == "cancelled"


def test_the_tasks_of_a_job_and_of_a_host_are_found(browser: Browser) -> None:
    task, other = TaskFactory.create_batch(2)
    for query in (f"job__id__exact={task.job_id}", f"host={task.domain.host}"):
        text = browser.get(f"{ADMIN}/crawltask/?{query}").content.decode()
        assert task.url in text
        assert other.url not in text


def test_the_pace_of_a_domain_is_changed_and_logged(browser: Browser) -> None:
    domain = DomainFactory.create()
    page = f"{ADMIN}/domain/{domain.pk}/change/"
    assert browser.post(page, PACE).status_code == 302
    domain.refresh_from_db()
    assert (domain.crawl_delay_seconds, domain.max_concurrent_requests) == (2.5, 1)
    assert AuditEntry.objects.get(verb="update").actor_kind == "operator"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"crawl_delay_seconds": "-1"}, "greater than or equal to 0"),
        ({"crawl_delay_seconds": "99999"}, "At most 3600 seconds"),
        ({"user_agent": "Bot\u2603"}, "printable ASCII"),
    ],
)
def test_a_bad_pace_is_said_in_the_form(
    browser: Browser, change: dict[str, str], text: str
) -> None:
    domain = DomainFactory.create()
    answer = browser.post(f"{ADMIN}/domain/{domain.pk}/change/", PACE | change)
    assert text in answer.content.decode()
    domain.refresh_from_db()
    assert domain.max_concurrent_requests == 2


def test_a_domain_is_blocked_and_unblocked(browser: Browser) -> None:
    domain = DomainFactory.create()
    assert "1 blocked" in press(browser, "domain", "block", domain)
    domain.refresh_from_db()
    assert domain.is_blocked
    press(browser, "domain", "unblock", domain)
    domain.refresh_from_db()
    assert (domain.is_blocked, domain.blocked_reason) == (False, "")


def test_a_circuit_is_reset_and_a_closed_one_says_so(browser: Browser) -> None:
    domain = DomainFactory.create(breaker_state="open", breaker_failures=5)
    assert "1 reset" in press(browser, "domain", "reset_circuit", domain)
    assert "closed already" in press(browser, "domain", "reset_circuit", domain)
    domain.refresh_from_db()
    assert domain.breaker_state == "closed"


def test_a_robots_file_is_made_due_while_a_worker_holds_the_domain(browser: Browser) -> None:
    later = timezone.now() + dt.timedelta(hours=1)
    domain = DomainFactory.create(robots_due_at=later, leased_by="w", leased_until=later)
    assert "1 asked" in press(browser, "domain", "refresh_robots", domain)
    domain.refresh_from_db()
    assert domain.robots_due_at is not None
    assert domain.robots_due_at <= timezone.now()
    assert domain.leased_by == "w"
