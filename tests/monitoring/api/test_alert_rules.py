from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEntry, Client
from monitoring.models import AlertRule
from tests.factories.accounts import api_for
from tests.factories.monitoring import ProductFactory, WebsiteFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(client_row: Client) -> Any:
    return api_for(client_row)


def rules_of(website_id: object) -> str:
    return f"/api/v1/websites/{website_id}/alert-rules"


def test_a_rule_is_made_shown_changed_and_deleted(client_row: Client, api: Any) -> None:
    website = WebsiteFactory.create(client=client_row)
    body = {"kind": "percent", "value": "5", "direction": "down", "rearm_minutes": 60}
    made = api.post(rules_of(website.pk), body, format="json")
    assert made.status_code == 201
    url = made["Location"]
    assert api.get(url).json()["value"] == "5.00"
    assert [r["id"] for r in api.get(rules_of(website.pk)).json()["items"]] == [made.json()["id"]]
    changed = api.patch(url, {"value": "10"}, format="json")
    assert changed.json()["value"] == "10.00"
    assert api.delete(url).status_code == 204
    assert api.get(url).status_code == 404
    verbs = AuditEntry.objects.filter(object_type="monitoring.alertrule").values_list("verb")
    assert sorted(v for (v,) in verbs) == ["create", "delete", "update"]


def test_a_product_has_rules_of_its_own(client_row: Client, api: Any) -> None:
    product = ProductFactory.create(website__client=client_row, approved=True)
    url = f"/api/v1/products/{product.pk}/alert-rules"
    made = api.post(url, {"kind": "target_below", "value": "9.90"}, format="json").json()
    assert made["product_id"] == str(product.pk)
    assert len(api.get(url).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"kind": "percent"}, "value"),
        ({"kind": "any", "value": "3"}, "value"),
        ({"kind": "percent", "value": "-1"}, "value"),
        ({"kind": "percent", "value": "1", "stock_to": ["in_stock"]}, "kind"),
        ({"kind": "stock", "confirm": True}, "confirm"),
        ({"kind": "nonsense"}, "kind"),
        ({"kind": "any", "colour": "red"}, "colour"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_name(
    client_row: Client, api: Any, body: dict[str, object], attr: str
) -> None:
    website = WebsiteFactory.create(client=client_row)
    answer = api.post(rules_of(website.pk), body, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == attr
    assert not AlertRule.objects.exists()


def test_a_key_that_may_only_read_makes_no_rule(client_row: Client) -> None:
    website = WebsiteFactory.create(client=client_row)
    reader = api_for(client_row, scopes=["read"])
    assert reader.post(rules_of(website.pk), {"kind": "any"}, format="json").status_code == 403
