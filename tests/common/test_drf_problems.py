from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ValidationError as ModelInvalid
from django.db import InterfaceError, OperationalError, connection
from django.http import Http404
from django.test import Client as Browser
from psycopg_pool import PoolTimeout
from rest_framework import exceptions as drf

from common import errors
from common.drf import problems
from tests.factories.accounts import ClientFactory, api_for
from tests.factories.static import static_root  # noqa: F401

MEMBERS = {"type", "title", "status", "detail", "code", "request_id", "errors"}
KEYS = "/api/v1/api-keys"


@pytest.fixture
def api(db: None) -> Any:
    return api_for(ClientFactory.create())


@pytest.fixture
def browser() -> Browser:
    return Browser(raise_request_exception=False)


def check(answer: Any, status: int, code: str) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert set(body) == MEMBERS
    assert body["status"] == status
    assert body["request_id"] == answer["X-Request-ID"]
    return body


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.UrlInvalid("x"), 400, "URL_INVALID"),
        (errors.UrlBlocked("x"), 403, "URL_BLOCKED"),
        (errors.DomainBlocked("x"), 403, "DOMAIN_BLOCKED"),
        (errors.LimitReached("x"), 403, "LIMIT_REACHED"),
        (errors.InvalidState("x"), 409, "INVALID_STATE"),
        (errors.Conflict("x"), 409, "CONFLICT"),
        (errors.Invalid("x"), 400, "VALIDATION_ERROR"),
        (ModelInvalid({"name": ["too long"]}), 400, "VALIDATION_ERROR"),
        (drf.ParseError(), 400, "VALIDATION_ERROR"),
        (drf.NotAuthenticated(), 401, "AUTH_REQUIRED"),
        (drf.AuthenticationFailed(), 401, "AUTH_REQUIRED"),
        (drf.PermissionDenied(), 403, "FORBIDDEN"),
        (Http404(), 404, "NOT_FOUND"),
        (drf.MethodNotAllowed("PUT"), 405, "METHOD_NOT_ALLOWED"),
        (drf.NotAcceptable(), 406, "NOT_ACCEPTABLE"),
        (drf.UnsupportedMediaType("text/csv"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (drf.Throttled(7), 429, "RATE_LIMITED"),
        (OperationalError(), 503, "SERVICE_UNAVAILABLE"),
        (InterfaceError(), 503, "SERVICE_UNAVAILABLE"),
        (PoolTimeout(), 503, "SERVICE_UNAVAILABLE"),
    ],
)
def test_every_class_of_failure_has_a_status_and_a_code(
    error: Exception, status: int, code: str
) -> None:
    problem = problems.of(error)
    assert (problem.status, problem.code) == (status, code)
    assert problem.detail
    assert ("Retry-After" in problem.headers) is (status in (429, 503))


def test_a_surprise_is_logged_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        problem = problems.of(ZeroDivisionError("secret detail"))
    assert (problem.status, problem.code) == (500, "INTERNAL_ERROR")
    assert "secret" not in str(problem.document())
    assert "secret detail" in caplog.text


def test_a_refusal_names_its_field() -> None:
    document = problems.of(errors.UrlInvalid("No host.", attr="base_url")).document()
    assert document["errors"] == [{"attr": "base_url", "code": "url_invalid", "detail": "No host."}]
    assert document["title"] == "URL invalid"
    assert document["type"] == "/docs/errors#url-invalid"


def test_nested_errors_get_dotted_names() -> None:
    nested: Any = {
        "items": [{}, {"url": ["Bad."]}],
        "tags": {0: ["Empty."]},
        "non_field_errors": ["No."],
    }
    found = problems.of(drf.ValidationError(nested)).errors
    assert [row["attr"] for row in found] == ["items.1.url", "tags.0", None]


def test_routing_has_its_own_404_and_the_slash_is_one(browser: Browser, db: None) -> None:
    for path in ("/api/v1/nothing", "/api/v1/api-keys/", "/api", "/health/nothing"):
        check(browser.get(path), 404, "NOT_FOUND")
    assert browser.get("/elsewhere")["Content-Type"].startswith("text/html")


def test_wrong_methods_name_the_right_ones(api: Any, browser: Browser) -> None:
    answer = api.put("/api/v1/me", {})
    check(answer, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer["Allow"]
    answer = browser.post("/health")
    check(answer, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer["Allow"]


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"",
        b"\xff\xfe",
        b'{"name": NaN}',
        b'"text"',
        b"1",
        b"null",
        b'{"name": "\\ud800"}',
        b'{"name": "a\\u0000b"}',
        b'{"a\\u0000b": 1}',
        b"[" * 2000 + b"]" * 2000,
    ],
)
def test_wrong_json_is_400(api: Any, raw: bytes) -> None:
    answer = api.generic("POST", KEYS, raw, content_type="application/json")
    check(answer, 400, "VALIDATION_ERROR")


def test_a_nul_is_named_where_it_stands(api: Any) -> None:
    raw = b'{"scopes": ["read", "x\\u0000"]}'
    answer = api.generic("POST", KEYS, raw, content_type="application/json")
    assert answer.json()["errors"][0]["attr"] == "scopes.1"


def test_an_escaped_backslash_is_not_a_nul(api: Any) -> None:
    raw = b'{"name": "a\\\\u0000", "scopes": ["read"]}'
    answer = api.generic("POST", KEYS, raw, content_type="application/json")
    assert answer.json()["name"] == "a\\u0000"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "x"])
def test_other_content_types_are_415(api: Any, kind: str) -> None:
    answer = api.generic("POST", KEYS, b"name=a", content_type=kind)
    check(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_only_json_is_spoken(api: Any) -> None:
    check(api.get("/api/v1/me", headers={"accept": "text/html"}), 406, "NOT_ACCEPTABLE")


def test_a_body_announced_as_too_large_is_413_before_the_key_is_read(
    browser: Browser, settings: Any
) -> None:
    settings.API_BODY_MAX_BYTES = 10
    answer = browser.post(KEYS, "x" * 11, content_type="application/json")
    check(answer, 413, "PAYLOAD_TOO_LARGE")


def test_a_chunked_body_is_read_and_limited(api: Any, settings: Any) -> None:
    # WSGI's test client always announces a length; ASGI servers do not for chunked bodies.
    from django.test import AsyncRequestFactory

    from common.requests import RequestMiddleware

    seen = []

    def view(request: Any) -> Any:
        from django.http import HttpResponse

        seen.append((request.body, request.META["CONTENT_LENGTH"]))
        return HttpResponse()

    def send(body: bytes) -> int:
        request = AsyncRequestFactory().post(
            KEYS, body, content_type="application/json", headers={"transfer-encoding": "chunked"}
        )
        del request.META["CONTENT_LENGTH"]
        return RequestMiddleware(view)(request).status_code

    settings.API_BODY_MAX_BYTES = 10
    assert send(b"[1]") == 200
    assert seen == [(b"[1]", "3")]
    assert send(b"x" * 11) == 413


def test_a_foreign_host_is_a_problem_too(browser: Browser, db: None) -> None:
    answer = browser.get("/api/v1/me", headers={"host": "evil.example"})
    check(answer, 400, "VALIDATION_ERROR")


def test_a_request_id_is_taken_over_when_it_is_sane(browser: Browser, db: None) -> None:
    given = browser.get("/health", headers={"x-request-id": "abc-DEF_1"})
    assert given["X-Request-ID"] == "abc-DEF_1"
    for odd in ("a b", "x" * 65, "<script>", ""):
        answer = browser.get("/health", headers={"x-request-id": odd})
        assert answer["X-Request-ID"] not in ("", odd)
    assert "X-Request-ID" in browser.get("/admin/login/")


@pytest.fixture
def database_away(db: None) -> Iterator[None]:
    with patch.object(connection, "cursor", side_effect=OperationalError("server closed")):
        yield


@pytest.mark.django_db
def test_a_database_that_is_away_is_503(browser: Browser, database_away: None) -> None:
    answer = browser.get("/api/v1/me", headers={"x-api-key": "obsrv_live_" + "a" * 43})
    check(answer, 503, "SERVICE_UNAVAILABLE")
    assert int(answer["Retry-After"]) > 0
    assert "server closed" not in answer.content.decode()


def test_views_outside_drf_answer_problems_as_well(browser: Browser, db: None) -> None:
    with patch("obsrv.health.JsonResponse", side_effect=OperationalError("gone")):
        check(browser.get("/health"), 503, "SERVICE_UNAVAILABLE")
    with patch("obsrv.health.JsonResponse", side_effect=ZeroDivisionError):
        check(browser.get("/health"), 500, "INTERNAL_ERROR")
