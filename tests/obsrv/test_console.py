"""The console's first page, its buttons and schedules, and the pages that explain the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from monitoring.models import Product, Website
from obsrv.schedules import ensure_schedules
from tests.factories.accounts import UserFactory
from tests.factories.monitoring import ProductFactory, WebsiteFactory
from tests.test_openapi import SCHEMA

pytestmark = pytest.mark.django_db
SCHEDULES = "/admin/django_celery_beat/periodictask"


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


@pytest.fixture
def website() -> Website:
    return WebsiteFactory.create(name="Lamps", active=True)


@pytest.fixture
def schedule(website: Website) -> PeriodicTask:
    return PeriodicTask.objects.get(website=website)


def page_of(task: PeriodicTask) -> str:
    return f"{SCHEDULES}/{task.pk}/change/"


def form_of(task: PeriodicTask, **changes: Any) -> dict[str, Any]:
    return {
        "name": task.name,
        "description": task.description,
        "enabled": "on",
        "regtask": task.task,
        "task": task.task,
        "args": task.args,
        "kwargs": task.kwargs,
        "crontab": task.crontab_id or "",
        "expire_seconds": task.expire_seconds,
    } | changes


def test_the_first_page_of_an_empty_installation_says_how_to_begin(browser: Browser) -> None:
    text = browser.get("/admin/").content.decode()
    assert "No website yet: register one" in text
    assert "/api/v1/websites" in text


def test_the_first_page_counts_with_few_queries(
    browser: Browser, website: Website, django_assert_max_num_queries: Any
) -> None:
    ProductFactory.create_batch(3, website=website)
    browser.get("/admin/")
    with django_assert_max_num_queries(14):
        context = browser.get("/admin/").context
    found = {card["title"]: card["value"] for card in context["cards"]}
    assert (found["Active websites"], found["Waiting for review"]) == ("1", "3")
    assert "curl" not in context


def test_somebody_without_rights_is_counted_nothing(client: Browser) -> None:
    client.force_login(UserFactory.create(is_staff=True))
    assert client.get("/admin/").context["cards"] == []


def test_a_candidate_is_decided_on_its_page_and_the_next_one_comes(
    browser: Browser, website: Website
) -> None:
    one, two = ProductFactory.create_batch(2, website=website)
    page = "/admin/monitoring/candidate/{}/change/"
    answer = browser.post(page.format(one.pk), {"monitoring_candidate_approve_this": ""})
    assert answer["Location"] == page.format(two.pk)
    answer = browser.post(page.format(two.pk), {"monitoring_candidate_reject_this": ""})
    assert answer["Location"] == "/admin/monitoring/candidate/"
    assert Product.objects.get(pk=one.pk).approval == "approved"
    assert Product.objects.get(pk=two.pk).approval == "rejected"
    # What is approved can only be rejected.
    text = browser.get(f"/admin/monitoring/product/{one.pk}/change/").content.decode()
    assert "monitoring_product_reject_this" in text
    assert "monitoring_product_approve_this" not in text


def test_neither_a_look_nor_a_stranger_decides(
    browser: Browser, client: Browser, website: Website
) -> None:
    product = ProductFactory.create(website=website)
    page = f"/admin/monitoring/candidate/{product.pk}/change/"
    browser.get(page, {"monitoring_candidate_approve_this": ""})
    client.force_login(UserFactory.create(is_staff=True))
    client.post(page, {"monitoring_candidate_approve_this": ""})
    assert Product.objects.get(pk=product.pk).approval == "pending"


def test_the_schedule_of_a_website_bears_its_name(
    browser: Browser, website: Website, schedule: PeriodicTask
) -> None:
    text = browser.get(page_of(schedule)).content.decode()
    assert "Lamps | Obsrv</title>" in text
    assert f"/admin/monitoring/website/{website.pk}/change/" in text


def test_an_interval_replaces_the_cron_line_and_the_other_way_round(
    browser: Browser, schedule: PeriodicTask
) -> None:
    page = page_of(schedule)
    assert browser.post(page, form_of(schedule, every=1800)).status_code == 302
    schedule = PeriodicTask.objects.get(pk=schedule.pk)
    assert (schedule.crontab, str(schedule.interval)) == (None, "every 30 minutes")
    line = CrontabSchedule.objects.create(hour="5", minute="0")
    form = form_of(schedule, every=1800, crontab=line.pk)
    assert browser.post(page, form).status_code == 302
    schedule = PeriodicTask.objects.get(pk=schedule.pk)
    assert (schedule.crontab, schedule.interval) == (line, None)


@pytest.mark.parametrize(
    ("every", "said"), [("", "Choose an interval or a cron line."), ("10", "valid choice")]
)
def test_no_schedule_and_a_hasty_one_are_refused(
    browser: Browser, schedule: PeriodicTask, every: str, said: str
) -> None:
    form = form_of(schedule, every=every, crontab="")
    text = browser.post(page_of(schedule), form).content.decode()
    assert said in text
    assert "solar" not in text
    assert PeriodicTask.objects.get(pk=schedule.pk).crontab == schedule.crontab


def test_the_schedules_of_obsrv_itself_may_be_fast_but_no_websites_may(browser: Browser) -> None:
    ensure_schedules()
    task = PeriodicTask.objects.get(name="obsrv: heartbeat")
    fast = IntervalSchedule.objects.create(every=7, period="seconds")
    assert browser.post(page_of(task), form_of(task, interval=fast.pk)).status_code == 302
    form = form_of(task, interval=fast.pk, name="mine", regtask="monitoring.tasks.crawl_website")
    answer = browser.post(f"{SCHEDULES}/add/", form)
    assert "once a minute at most" in answer.content.decode()


def test_an_interval_that_websites_share_is_not_edited_below_a_minute(
    browser: Browser, schedule: PeriodicTask
) -> None:
    row = IntervalSchedule.objects.create(every=30, period="minutes")
    page = f"/admin/django_celery_beat/intervalschedule/{row.pk}/change/"
    unused = {f"periodictask_set-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    hasty = {"every": "5", "period": "seconds", **unused}
    PeriodicTask.objects.filter(pk=schedule.pk).update(interval=row, crontab=None)
    said = browser.post(page, hasty).content.decode()
    assert "1 website would be crawled by it" in said
    row.refresh_from_db()
    assert (row.every, row.period) == (30, "minutes")
    assert browser.post(page, {**hasty, "every": "90"}).status_code == 302
    PeriodicTask.objects.filter(pk=schedule.pk).delete()
    assert browser.post(page, hasty).status_code == 302


@pytest.mark.parametrize("page", ["/api/docs", "/api/redoc"])
def test_the_documentation_asks_no_other_host(client: Browser, page: str) -> None:
    policy = client.get(page)["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'; ")
    assert "http" not in policy


def test_the_examples_of_a_bulk_decision_hold_one_choice_each() -> None:
    body = SCHEMA["paths"]["/api/v1/candidates/bulk"]["post"]["requestBody"]
    examples = body["content"]["application/json"]["examples"].values()
    chosen = [{"ids", "filter"} & set(example["value"]) for example in examples]
    assert chosen == [{"ids"}, {"filter"}]


def test_operations_for_operators_say_so() -> None:
    for path in ("/api/v1/tasks", "/api/v1/domains", "/api/v1/clients"):
        assert "Needs an operator key." in SCHEMA["paths"][path]["get"]["description"]
    assert "Needs an" not in SCHEMA["paths"]["/api/v1/websites"]["get"].get("description", "")


def test_pages_of_the_console_run_no_script_of_anybody_else(browser: Browser) -> None:
    for page in ("/admin/", "/admin/monitoring/product/", "/admin/login/"):
        policy = browser.get(page)["Content-Security-Policy"]
        assert "script-src 'self' 'unsafe-eval';" in policy
        assert "frame-ancestors 'none'" in policy
    assert "Content-Security-Policy" not in browser.get("/health").headers
