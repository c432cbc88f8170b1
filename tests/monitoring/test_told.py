from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.db import transaction

from accounts.audit import SYSTEM
from accounts.models import AuditEntry
from common.errors import InvalidState
from monitoring import delisting, product_control, told
from monitoring.models import Change, Product
from notifications.models import Delivery, Event
from tests.factories.monitoring import ChangeFactory, ProductFactory
from tests.factories.notifications import EndpointFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def product() -> Product:
    product = ProductFactory.create(approved=True, website__active=True)
    EndpointFactory.create(client=product.website.client)
    return product


def test_a_product_delisted_by_hand_is_told_and_no_longer_looked_at(product: Product) -> None:
    change = delisting.delist(product, actor=SYSTEM)
    product.refresh_from_db()
    assert (product.delisted_at is not None, product.is_active) == (True, False)
    assert (change.kind, change.rule) == ("delisted", "delisted by hand")
    body = orjson.loads(Event.objects.get(type="product.delisted").body)
    assert body["data"]["change"]["id"] == str(change.pk)
    assert AuditEntry.objects.get(verb="delist").object_id == str(product.pk)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [({"approval": "pending"}, "is not watched"), ({"approval": "approved"}, "delisted already")],
)
def test_only_a_watched_product_is_delisted_and_only_once(
    facts: dict[str, Any], reason: str
) -> None:
    product = ProductFactory.create(**facts)
    if product.approval == "approved":
        delisting.delist(product, actor=SYSTEM)
    with pytest.raises(InvalidState, match=reason):
        delisting.delist(product, actor=SYSTEM)
    assert Change.objects.count() == (product.approval == "approved")


def test_many_products_are_delisted_at_once(product: Product) -> None:
    (outcome,) = product_control.act_on_many(
        "delist", [product.pk], Product.objects.all(), actor=SYSTEM, dry_run=False
    )
    assert outcome.result == "done"
    assert Change.objects.get().kind == "delisted"


def test_a_change_knows_its_event_and_whether_it_arrived(product: Product) -> None:
    change, silent = delisting.delist(product, actor=SYSTEM), ChangeFactory.create()
    news = told.events_of([change, silent])
    assert silent.pk not in news
    assert (news[change.pk].type, news[change.pk].deliveries) == ("product.delisted", 1)
    assert news[change.pk].delivered == 0
    Delivery.objects.update(status="success")
    assert told.events_of([change])[change.pk].delivered == 1


def test_a_replayed_event_is_sent_again(product: Product) -> None:
    change = delisting.delist(product, actor=SYSTEM)
    Delivery.objects.update(status="success")
    with transaction.atomic():
        assert told.replay(change, actor=SYSTEM) == 1
    assert Delivery.objects.get().status == "pending"
    assert AuditEntry.objects.filter(verb="redeliver").exists()


def test_a_change_that_nobody_was_told_of_cannot_be_replayed() -> None:
    with pytest.raises(InvalidState, match="there is no event"):
        told.replay(ChangeFactory.create(), actor=SYSTEM)
