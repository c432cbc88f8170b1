"""Alert rules: made, changed and removed; one function for console and API."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts import audit
from accounts.audit import Actor
from common.errors import Invalid, LimitReached
from monitoring.models import AlertRule, Product, Website

MAX_PER_WEBSITE = 1000
COLUMNS = (
    "name",
    "kind",
    "value",
    "direction",
    "stock_from",
    "stock_to",
    "rearm_minutes",
    "confirm",
    "is_active",
)


@transaction.atomic
def create_rule(
    website: Website, *, actor: Actor, product: Product | None = None, **values: Any
) -> AlertRule:
    rule = AlertRule(website=website, product=product, **values)
    _check(rule)
    # The website's row keeps two from passing the limit together.
    Website.objects.select_for_update(of=("self",), no_key=True).get(pk=website.pk)
    if website.alert_rules.count() >= MAX_PER_WEBSITE:
        raise LimitReached(f"A website has {MAX_PER_WEBSITE} alert rules at most: delete some.")
    rule.save(force_insert=True)
    audit.record(actor, "create", rule, client_id=website.client_id, after=facts(rule))
    return rule


@transaction.atomic
def update_rule(rule: AlertRule, *, actor: Actor, **values: Any) -> AlertRule:
    rows = AlertRule.objects.select_for_update(of=("self",)).select_related("website")
    locked = rows.get(pk=rule.pk)
    before = facts(locked)
    for name, value in values.items():
        setattr(locked, name, value)
    _check(locked)
    locked.save()
    client_id = locked.website.client_id
    audit.record(actor, "update", locked, client_id=client_id, before=before, after=facts(locked))
    return locked


@transaction.atomic
def delete_rule(rule: AlertRule, *, actor: Actor) -> None:
    client_id = rule.website.client_id
    audit.record(actor, "delete", rule, client_id=client_id, before=facts(rule))
    rule.delete()


def facts(rule: AlertRule) -> dict[str, Any]:
    values = {name: getattr(rule, name) for name in COLUMNS}
    return values | {"value": None if rule.value is None else str(rule.value)}


def _check(rule: AlertRule) -> None:
    needs = rule.kind in AlertRule.WITH_VALUE
    if needs and (rule.value is None or rule.value <= 0):
        raise Invalid(f"A rule of kind {rule.kind} needs a value above 0.", attr="value")
    if not needs and rule.value is not None:
        raise Invalid(f"A rule of kind {rule.kind} takes no value.", attr="value")
    is_stock = rule.kind == AlertRule.Kind.STOCK
    if not is_stock and (rule.stock_from or rule.stock_to):
        raise Invalid("Only a rule of kind stock takes stock_from and stock_to.", attr="kind")
    if is_stock and rule.confirm:
        raise Invalid("Only prices are confirmed by a second look.", attr="confirm")
