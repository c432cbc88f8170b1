from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from accounts import keys
from accounts.models import ApiKey, Client, User

pytestmark = pytest.mark.django_db


def bootstrap(*arguments: str) -> str:
    out = io.StringIO()
    call_command("bootstrap", *arguments, stdout=out)
    return out.getvalue()


def bootstrap_json(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(bootstrap("--json", *arguments))
    return told


def test_the_first_run_makes_what_can_be_used_at_once() -> None:
    told = bootstrap_json("--operator", "ada", "--client", "Acme", "--email", "it@acme.example")
    operator = authenticate(username="ada", password=told["operator_password"])
    assert isinstance(operator, User)
    assert operator.is_superuser
    key = keys.find(told["client_key"])
    assert key
    assert key.client == Client.objects.get(name="Acme", email="it@acme.example")
    assert set(key.scopes) == {"read", "write", "admin"}
    operator_key = keys.find(told["operator_key"])
    assert operator_key
    assert operator_key.client is None


def test_the_second_run_changes_nothing_and_says_so() -> None:
    first = bootstrap()
    assert "Password" in first
    before = User.objects.get().password, ApiKey.objects.count(), Client.objects.count()
    assert "Already done" in bootstrap()
    assert bootstrap_json()["made_something"] is False
    assert (User.objects.get().password, ApiKey.objects.count(), Client.objects.count()) == before


def test_a_further_client_can_be_made() -> None:
    bootstrap()
    told = bootstrap_json("--client", "Second", "--email", "second@example.com")
    assert keys.find(told["client_key"])
    assert told["operator_password"] == ""


def test_groups_hold_more_rights_the_higher_they_are() -> None:
    bootstrap()
    rights = {
        group.name: set(group.permissions.values_list("codename", flat=True))
        for group in Group.objects.all()
    }
    assert rights["viewer"] < rights["operator"] < rights["admin"]
    assert all(name.startswith("view_") for name in rights["viewer"])
    assert "delete_user" not in rights["operator"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--email", "nonsense", "valid email"),
        ("--operator", "two words", "valid username"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_made(option: str, value: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        bootstrap(option, value)
    assert not User.objects.exists()
    assert not Client.objects.exists()
