"""Every list of the console: cheap however long, and taken along as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.db import connection, models
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories.accounts import ClientFactory, UserFactory
from tests.factories.crawling import TaskFactory
from tests.factories.static import static_root  # noqa: F401
from tests.obsrv.console_rows import address, browser_of, make_rows, member_of, screen_of, screens

pytestmark = pytest.mark.django_db
MOST_QUERIES = 15
FEW, MANY = 2, 30


@pytest.fixture
def browser() -> Browser:
    return browser_of(UserFactory.create(superuser=True))


def lists() -> list[str]:
    pages = [address(model, "changelist") for model in screens()]
    return [*pages, "/admin/", reverse("admin:crawling_crawlerror_groups"), reverse("system")]


def queries_of(browser: Browser) -> dict[str, int]:
    found = {}
    for page in lists():
        with CaptureQueriesContext(connection) as asked:
            assert browser.get(page).status_code == 200, page
        found[page] = len(asked)
    return found


def test_a_long_list_needs_no_more_queries_than_a_short_one(browser: Browser) -> None:
    make_rows(FEW)
    queries_of(browser)
    few = queries_of(browser)
    make_rows(MANY - FEW, start=FEW)
    many = queries_of(browser)
    assert {page: count for page, count in many.items() if count > MOST_QUERIES} == {}
    assert {page: (few[page], count) for page, count in many.items() if count > few[page]} == {}


def exported(browser: Browser, page: str, **query: str) -> list[list[str]]:
    answer: Any = browser.get(page, {"_export": "csv", **query})
    assert answer.status_code == 200, page
    assert answer["Content-Type"].startswith("text/csv")
    text = b"".join(answer.streaming_content).decode()
    return list(csv.reader(io.StringIO(text)))


def own_lists() -> list[type[models.Model]]:
    return [model for model in screens() if getattr(screen_of(model), "csv_columns", ())]


def test_lists_are_taken_along_as_csv_by_who_may_read_them(client: Browser) -> None:
    make_rows(FEW)
    viewer = browser_of(member_of("viewer"))
    assert len(own_lists()) >= 15
    for model in own_lists():
        head, *rows = exported(viewer, address(model, "changelist"))
        assert head == list(screen_of(model).csv_columns)
        assert len(rows) >= FEW, model
    client.force_login(UserFactory.create(is_staff=True))
    for model in own_lists():
        page = address(model, "changelist")
        assert client.get(page, {"_export": "csv"}).status_code == 403


def test_the_filters_hold_for_the_file_too(browser: Browser) -> None:
    TaskFactory.create(status="failed", url="https://shop.example/bad")
    TaskFactory.create(status="pending")
    tasks = reverse("admin:crawling_crawltask_changelist")
    head, *rows = exported(browser, tasks, status__exact="failed")
    assert [row[head.index("url")] for row in rows] == ["https://shop.example/bad"]
    wrong = browser.get(tasks, {"_export": "csv", "nonsense": "1"})
    assert (wrong.status_code, wrong["Location"]) == (302, tasks)


def test_no_row_is_lost_between_two_pieces(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.console_csv.PIECE", 3)
    made = {str(ClientFactory.create().pk) for _ in range(7)}
    head, *rows = exported(browser, reverse("admin:accounts_client_changelist"))
    ids = [row[head.index("id")] for row in rows]
    assert sorted(ids, reverse=True) == ids
    assert set(ids) == made


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_no_cell_is_a_formula(browser: Browser, start: str) -> None:
    ClientFactory.create(name=f"{start}1+1")
    head, row = exported(browser, reverse("admin:accounts_client_changelist"))
    assert row[head.index("name")] == f"'{start}1+1"


def test_a_list_shows_no_secret_and_decrypts_none(browser: Browser, settings: Any) -> None:
    """As it would be with a key that is lost: the console still opens."""
    make_rows(FEW)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_client SET webhook_secret_current = 'no token'")
        cursor.execute("UPDATE crawling_proxy SET password = 'no token'")
    for name in ("accounts_client", "accounts_apikey", "crawling_proxy", "notifications_delivery"):
        assert browser.get(reverse(f"admin:{name}_changelist")).status_code == 200
