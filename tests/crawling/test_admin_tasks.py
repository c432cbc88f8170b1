from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import Settings

from accounts.models import AuditEntry
from crawling.models import CrawlTask
from tests.crawling.work import failed_job, stored_page
from tests.factories.accounts import UserFactory
from tests.factories.crawling import CrawlErrorFactory, TaskFactory
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
TASKS, GROUPS = "/admin/crawling/crawltask/", "/admin/crawling/crawlerror/groups/"


@pytest.fixture(autouse=True)
def consumers(settings: Settings) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}


@pytest.fixture
def browser() -> Browser:
    browser = Browser()
    browser.force_login(UserFactory.create(superuser=True))
    return browser


def press(browser: Browser, action: str, task: CrawlTask) -> str:
    chosen = {"action": action, "_selected_action": [str(task.pk)]}
    return browser.post(TASKS, chosen, follow=True).content.decode()


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("pause", "pending", ("paused", 5)),
        ("resume", "paused", ("pending", 5)),
        ("cancel", "pending", ("cancelled", 5)),
        ("restart_from_fetch", "paused", ("pending", 5)),
        ("restart_from_parse", "paused", ("queued_parse", 5)),
        ("most_urgent", "pending", ("pending", 1)),
        ("least_urgent", "pending", ("pending", 10)),
    ],
)
def test_a_task_is_steered_from_the_list(
    browser: Browser, action: str, before: str, after: tuple[str, int]
) -> None:
    task = TaskFactory.create(status=before, stored_page=stored_page())
    assert press(browser, action, task)
    task.refresh_from_db()
    assert (task.status, task.priority) == after
    assert AuditEntry.objects.get(object_id=str(task.pk)).actor_kind == "operator"


def test_a_wrong_state_is_said(browser: Browser) -> None:
    task = TaskFactory.create(status="completed")
    assert "cannot be paused" in press(browser, "pause", task)


def test_errors_are_shown_in_groups_and_a_group_is_retried(browser: Browser) -> None:
    failed_job("https://a.example/1", "https://a.example/2")
    CrawlErrorFactory.create(message="<script>alert(1)</script>", fingerprint="hostile")
    text = browser.get(GROUPS).content.decode()
    assert "the shop answered 404" in text
    assert "<script>alert(1)" not in text
    assert text.count("Retry group") == 1
    task = CrawlTask.objects.filter(status="failed").first()
    assert task is not None
    group = {"fingerprint": task.error_log.get().fingerprint}
    answer = browser.post(GROUPS, group, follow=True)
    assert "2 dead letters are tried again" in answer.content.decode()
    assert not CrawlTask.objects.filter(status="failed").exists()


def test_who_may_only_look_cannot_retry() -> None:
    failed_job("https://a.example/1")
    browser = Browser()
    browser.force_login(UserFactory.create(is_staff=True))
    assert browser.get(GROUPS).status_code == 403
    assert browser.post(GROUPS, {"fingerprint": "x"}).status_code == 403
    assert CrawlTask.objects.get().status == "failed"


def test_groups_are_of_the_newest_errors_only(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    for minutes in range(4):
        moment = now - dt.timedelta(minutes=minutes)
        CrawlErrorFactory.create(
            message=f"minute {minutes}", fingerprint=str(minutes), occurred_at=moment
        )
    monkeypatch.setattr("crawling.admin_tasks.MOST_ERRORS", 1)
    text = browser.get(GROUPS).content.decode()
    assert "minute 1" in text
    assert "minute 2" not in text


def test_the_stored_page_of_an_error_is_one_click_away(browser: Browser) -> None:
    error = CrawlErrorFactory.create(task__stored_page=stored_page())
    address = f"/admin/crawling/storedpage/{error.task.stored_page_id}/change/"
    assert address in browser.get(GROUPS).content.decode()


def test_a_task_offers_what_its_state_allows(browser: Browser) -> None:
    task = TaskFactory.create(status="paused")
    page = f"{TASKS}{task.pk}/change/"
    text = browser.get(page).content.decode()
    assert "crawling_crawltask_resume_this" in text
    assert "crawling_crawltask_pause_this" not in text
    assert "crawling_crawltask_parse_this" not in text
    browser.post(page, {"crawling_crawltask_resume_this": ""})
    task.refresh_from_db()
    assert task.status == "pending"
