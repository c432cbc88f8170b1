from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Client
from common.ids import uuid7
from monitoring.models import Website
from tests.factories.monitoring import WebsiteFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db
WEBSITES = "/api/v1/websites"


def test_a_website_is_shown_with_its_schedule_and_webhook(
    reader: Any, client_row: Client, website: Website
) -> None:
    EndpointFactory.create(client=client_row, website_id=website.pk, url="https://a.example/h")
    body = reader.get(f"{WEBSITES}/{website.pk}").json()
    assert body["name"] == website.name
    assert body["webhook_endpoint_url"] == "https://a.example/h"
    assert body["schedule"].endswith("(UTC)")
    assert body["next_run_at"] > timezone.now().isoformat()[:19]


def test_websites_are_listed_and_filtered(reader: Any, client_row: Client) -> None:
    lamps = WebsiteFactory.create(client=client_row, name="Lamps", paused=True)
    WebsiteFactory.create(client=client_row, name="Chairs")
    WebsiteFactory.create(name="Of another client")
    assert len(reader.get(WEBSITES).json()["items"]) == 2
    for query in ({"q": "lam"}, {"status": "paused"}):
        found = reader.get(WEBSITES, query).json()["items"]
        assert [item["id"] for item in found] == [str(lamps.pk)]
    named = [item["name"] for item in reader.get(WEBSITES, {"order": "name"}).json()["items"]]
    assert named == ["Chairs", "Lamps"]


@pytest.mark.parametrize(
    ("query", "attr"),
    [({"status": "asleep"}, "status"), ({"order": "secret"}, "order"), ({"limit": 0}, "limit")],
)
def test_a_bad_query_is_named(reader: Any, query: dict[str, Any], attr: str) -> None:
    answer = reader.get(WEBSITES, query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr


@pytest.mark.parametrize("count", [1, 12])
def test_a_long_list_asks_the_database_no_more_than_a_short_one(
    reader: Any,
    client_row: Client,
    count: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    WebsiteFactory.create_batch(count, client=client_row, active=True)
    reader.get(WEBSITES)
    with django_assert_num_queries(2):
        assert len(reader.get(WEBSITES).json()["items"]) == count


def test_an_unchanged_website_is_not_sent_twice(reader: Any, website: Website) -> None:
    first = reader.get(f"{WEBSITES}/{website.pk}")
    again = reader.get(f"{WEBSITES}/{website.pk}", HTTP_IF_NONE_MATCH=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    website.save()
    assert reader.get(f"{WEBSITES}/{website.pk}", HTTP_IF_NONE_MATCH=first["ETag"]).json()


def test_only_its_own_client_sees_it(client: Browser, stranger: Any, website: Website) -> None:
    assert client.get(WEBSITES).status_code == 401
    assert client.get(f"{WEBSITES}/{website.pk}").status_code == 401
    assert stranger.get(WEBSITES).json()["items"] == []
    theirs = stranger.get(f"{WEBSITES}/{website.pk}")
    assert theirs.status_code == 404
    assert stranger.get(f"{WEBSITES}/{uuid7()}").json()["detail"] == theirs.json()["detail"]
