from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import AuditEntry, Client
from crawling.models import CrawlProfile
from tests.factories.crawling import ProfileFactory

pytestmark = pytest.mark.django_db
PROFILES = "/api/v1/crawl-profiles"


def test_a_client_keeps_its_own_profiles(api: Any, stranger: Any, client_row: Client) -> None:
    answer = api.post(PROFILES, {"name": "Gentle", "rate_limit_rps": 0.5})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["client_id"], made["respect_robots"]) == (str(client_row.pk), True)
    path = answer["Location"]
    assert api.patch(path, {"max_depth": 4}).json()["max_depth"] == 4
    assert [row["id"] for row in api.get(PROFILES).json()["items"]] == [made["id"]]
    assert stranger.get(path).status_code == 404
    assert stranger.delete(path).status_code == 404
    assert api.delete(path).status_code == 204
    verbs = AuditEntry.objects.filter(object_type="crawling.crawlprofile")
    assert sorted(verbs.values_list("verb", flat=True)) == ["create", "delete", "update"]


def test_an_operator_makes_a_shared_one_and_may_ignore_robots(operator: Any) -> None:
    answer = operator.post(PROFILES, {"name": "Ours", "respect_robots": False})
    assert (answer.status_code, answer.json()["client_id"]) == (201, None)


def test_two_profiles_of_one_name_do_not_go(api: Any) -> None:
    assert api.post(PROFILES, {"name": "Gentle"}).status_code == 201
    answer = api.post(PROFILES, {"name": "Gentle"})
    assert (answer.status_code, answer.json()["errors"][0]["attr"]) == (409, "name")


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "name"),
        ({"name": "a", "respect_robots": False}, "respect_robots"),
        ({"name": "a", "timeout_seconds": 31}, "timeout_seconds"),
        ({"name": "a", "max_depth": 11}, "max_depth"),
        ({"name": "a", "headers": {"Host": "evil.example"}}, "headers"),
        ({"name": "a", "headers": {"Range": "bytes=0-9"}}, "headers"),
        ({"name": "a", "headers": {"expect": "100-continue"}}, "headers"),
        ({"name": "a", "headers": {"X-A": "1", "x-a": "2"}}, "headers"),
        ({"name": "a", "headers": {"X-A": "a\r\nB: c"}}, "headers"),
        ({"name": "a", "headers": {"bad name": "x"}}, "headers"),
        ({"name": "a", "unknown": 1}, "unknown"),
    ],
)
def test_bad_input_is_named_and_makes_nothing(api: Any, body: dict[str, Any], attr: str) -> None:
    answer = api.post(PROFILES, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"].split(".")[0] == attr
    assert not CrawlProfile.objects.exists()


def test_the_audit_log_keeps_no_header_values(api: Any) -> None:
    api.post(PROFILES, {"name": "a", "headers": {"Authorization": "Basic c2VjcmV0"}})
    assert AuditEntry.objects.get(object_type="crawling.crawlprofile").after["headers"] == [
        "Authorization"
    ]


def test_reading_needs_a_key_and_writing_its_scope(client: Browser, reader: Any) -> None:
    assert client.get(PROFILES).status_code == 401
    assert reader.post(PROFILES, {"name": "a"}).status_code == 403


def test_a_client_may_change_the_rest_of_a_profile_that_passes_over_robots(
    api: Any, client_row: Client
) -> None:
    profile = ProfileFactory.create(client=client_row, respect_robots=False)
    path = f"{PROFILES}/{profile.pk}"
    assert api.patch(path, {"max_depth": 1}).status_code == 200
    assert api.patch(path, {"respect_robots": False}).status_code == 400
