"""Guessing passwords comes to an end, and people get in again."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import time_machine
from django.test import Client as Browser
from django.utils import timezone

from accounts import logins
from accounts.models import AuditEntry, FailedLogin
from tests.factories.accounts import UserFactory
from tests.factories.static import static_root  # noqa: F401

pytestmark = pytest.mark.django_db
LOGIN, LOCKED = "/admin/login/", "/admin/accounts/failedlogin/"
RIGHT = "a-long-password-1"


@pytest.fixture(autouse=True)
def ana() -> None:
    operator = UserFactory.build(superuser=True, username="ana")
    operator.set_password(RIGHT)
    operator.save()


def log_in(password: str, *, username: str = "ana", address: str = "192.0.2.1") -> Any:
    form = {"username": username, "password": password}
    return Browser(REMOTE_ADDR=address).post(LOGIN, form)


def fail(times: int, **who: str) -> Any:
    answers = [log_in("wrong", **who) for _ in range(times)]
    return answers[-1].content.decode()


def test_after_five_bad_logins_the_right_password_must_wait_too() -> None:
    assert "Too many" not in fail(4)
    assert "Too many failed logins. Wait 15 minutes" in fail(1)
    answer = log_in(RIGHT)
    assert "Wait 15 minutes" in answer.content.decode()
    assert "_auth_user_id" not in answer.client.session


def test_after_the_wait_the_door_opens_again() -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False) as traveller:
        fail(5)
        traveller.shift(dt.timedelta(minutes=10))
        # Trying on does not make the wait longer.
        assert "Wait 5 minutes" in fail(3)
        traveller.shift(dt.timedelta(minutes=5, seconds=1))
        assert log_in(RIGHT).status_code == 302


def test_a_good_login_forgets_the_bad_ones() -> None:
    fail(4)
    assert log_in(RIGHT).status_code == 302
    assert "Too many" not in fail(4)


def test_others_are_not_locked_out_with_them() -> None:
    fail(5)
    assert log_in(RIGHT, address="192.0.2.2").status_code == 302
    other = UserFactory.build(superuser=True, username="ben")
    other.set_password(RIGHT)
    other.save()
    assert log_in(RIGHT, username="ben").status_code == 302


def test_one_address_cannot_try_many_names() -> None:
    FailedLogin.objects.create(
        username="", address="192.0.2.1", failures=logins.ADDRESS_LIMIT, last_at=timezone.now()
    )
    assert "Too many" in fail(1, username="somebody")
    assert log_in(RIGHT, address="192.0.2.9").status_code == 302


def test_a_network_of_ipv6_addresses_is_one_place() -> None:
    for n in range(5):
        fail(1, address=f"2001:db8::{n:x}")
    assert "Too many" in fail(1, address="2001:db8::ffff")


def test_an_admin_unlocks_and_the_log_knows_both() -> None:
    fail(5)
    chief = Browser()
    chief.force_login(UserFactory.create(superuser=True))
    row = FailedLogin.objects.get(username="ana")
    assert "data-until" in chief.get(LOCKED).content.decode()
    chief.post(LOCKED, {"action": "unlock", "_selected_action": [str(row.pk)]})
    assert log_in(RIGHT).status_code == 302
    verbs = AuditEntry.objects.order_by("created_at").values_list("verb", "actor_kind")
    assert list(verbs) == [("lock_out", "system"), ("unlock", "operator")]


def test_an_empty_form_is_no_try() -> None:
    Browser().post(LOGIN, {"username": "ana", "password": ""})
    assert not FailedLogin.objects.exists()


def test_old_tries_are_forgotten() -> None:
    fail(1)
    FailedLogin.objects.update(last_at=timezone.now() - logins.KEPT_FOR - dt.timedelta(minutes=1))
    assert logins.forget_old() == 2


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "172.17.0.1", "192.168.1.1", "::1"])
def test_people_behind_an_unnamed_proxy_do_not_lock_each_other_out(address: str) -> None:
    FailedLogin.objects.create(
        username="",
        address=logins.place_of(address),
        failures=logins.ADDRESS_LIMIT,
        last_at=timezone.now(),
    )
    assert log_in(RIGHT, address=address).status_code == 302
