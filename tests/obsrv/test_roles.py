"""Viewers read everything and change nothing; operators work; admins also manage access.

Every screen, page, action and button there is, found in the registry: a new one is tested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import models
from django.test import Client as Browser
from django.urls import URLPattern, reverse
from django_celery_beat.models import PeriodicTask

from accounts.models import AuditEntry, User
from tests.factories.accounts import UserFactory
from tests.factories.static import static_root  # noqa: F401
from tests.obsrv.console_rows import (
    address,
    browser_of,
    make_rows,
    member_of,
    request_of,
    row_of,
    screen_of,
    screens,
)

pytestmark = pytest.mark.django_db
STANDARD = ("changelist", "add", "history", "delete", "change", "autocomplete")
# A page for reading, whose form asks what to read.
READING = {"monitoring_product_debugger"}
ADMINS_ONLY = ("accounts", "auth")
SYSTEM = ("/admin/system/", "/admin/system/queues/", "/admin/system/retention/")


@pytest.fixture
def viewer() -> Browser:
    make_rows()
    return browser_of(member_of("viewer"))


def own_pages(model: type[models.Model], row: Any) -> Iterator[str]:
    """What a screen has beside Django's own pages."""
    own = f"{model._meta.app_label}_{model._meta.model_name}_"
    for pattern in screen_of(model).get_urls():
        name = pattern.name if isinstance(pattern, URLPattern) else None
        if name is None or name in READING or name.removeprefix(own) in STANDARD:
            continue
        wanted = pattern.pattern.converters or ("object_id" in str(pattern.pattern) and {"x": 1})
        yield reverse(f"admin:{name}", args=[row.pk] if wanted else [])


def state() -> list[Any]:
    """What nobody may have changed."""
    return [
        AuditEntry.objects.count(),
        *(list(model._base_manager.order_by("pk").values()) for model in screens()),
    ]


def attempts(model: type[models.Model], row: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every action, button, form and page of a screen, as somebody with all rights sees it."""
    screen, chief = screen_of(model), request_of(UserFactory.build(superuser=True))
    listed, page = address(model, "changelist"), address(model, "change", row.pk)
    for action in screen.get_actions(chief):
        yield listed, {"action": action, "_selected_action": [str(row.pk)], "post": "yes"}
    for button in screen.actions_submit_line:
        yield page, {f"{model._meta.app_label}_{model._meta.model_name}_{button}": ""}
    yield page, {"_save": ""}
    yield address(model, "add"), {"name": "x"}
    yield address(model, "delete", row.pk), {"post": "yes"}
    for place in own_pages(model, row):
        yield place, {"fingerprint": "x", "post": "yes"}


def test_a_viewer_reads_every_screen(viewer: Browser) -> None:
    for model in screens():
        for page in (address(model, "changelist"), address(model, "change", row_of(model).pk)):
            assert viewer.get(page).status_code == 200, page


def test_no_post_of_a_viewer_passes(viewer: Browser) -> None:
    looker = request_of(User.objects.get(username="viewer"))
    before, tried = state(), 0
    for model in screens():
        assert not screen_of(model).get_actions(looker), model
        for place, body in attempts(model, row_of(model)):
            answer = viewer.post(place, body)
            # A list without actions is just shown again.
            listed = place == address(model, "changelist")
            refused = (200,) if listed else (403, 405)
            assert answer.status_code in refused, (place, body)
            tried += 1
    assert tried > 150
    assert state() == before


@pytest.mark.parametrize("place", SYSTEM)
def test_a_viewer_looks_at_the_system_and_starts_nothing(viewer: Browser, place: str) -> None:
    known = AuditEntry.objects.count()
    assert viewer.get(place).status_code == 200
    assert viewer.post(place).status_code in (403, 405)
    assert AuditEntry.objects.count() == known


@pytest.mark.parametrize("place", SYSTEM)
def test_somebody_without_a_role_does_not_see_the_system(client: Browser, place: str) -> None:
    assert client.get(place).status_code == 302
    client.force_login(UserFactory.create(is_staff=True))
    assert client.get(place).status_code == 403


def test_an_operator_works_but_manages_no_access() -> None:
    make_rows()
    browser = browser_of(member_of("operator"))
    for model in screens():
        request = request_of(User.objects.get(username="operator"))
        may_add = screen_of(model).has_add_permission(request)
        assert not (may_add and model._meta.app_label in ADMINS_ONLY), model
    task = PeriodicTask.objects.get(name="obsrv: purge")
    chosen = {"action": "disable_tasks", "_selected_action": [str(task.pk)]}
    browser.post(address(PeriodicTask, "changelist"), chosen)
    task.refresh_from_db()
    assert not task.enabled
    assert AuditEntry.objects.get(object_type="django_celery_beat.periodictask").actor_name == (
        "operator"
    )


def test_an_admin_manages_access() -> None:
    make_rows()
    member_of("admin")
    request = request_of(User.objects.get(username="admin"))
    writable = [model for model in screens() if screen_of(model).has_add_permission(request)]
    names = {model._meta.model_name for model in writable}
    assert {"client", "apikey", "user", "group", "webhookendpoint"} <= names
