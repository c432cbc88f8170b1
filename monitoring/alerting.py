"""The rules of a batch: those of its websites and products, and which of them rest."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from django.db.models import Max
from django.utils import timezone

from monitoring.changes import Alert, Rules
from monitoring.models import AlertRule, Change, Website

Key = tuple[uuid.UUID, uuid.UUID]


@dataclass(frozen=True, slots=True)
class Rulebook:
    """What is news, for every product of a batch."""

    clients: dict[uuid.UUID, uuid.UUID]
    defaults: dict[uuid.UUID, Rules]
    of_websites: Mapping[uuid.UUID, tuple[Alert, ...]] = field(default_factory=dict)
    of_products: Mapping[uuid.UUID, tuple[Alert, ...]] = field(default_factory=dict)
    # (rule, product) pairs that were told too recently.
    resting: frozenset[Key] = frozenset()

    def rules(self, website_id: uuid.UUID, product_id: uuid.UUID) -> Rules:
        default = self.defaults[website_id]
        alerts = self._alerts(website_id, product_id)
        if not alerts:
            return default
        armed = (replace(a, armed=(a.id, product_id) not in self.resting) for a in alerts)
        return replace(default, alerts=tuple(armed))

    def _alerts(self, website_id: uuid.UUID, product_id: uuid.UUID) -> Sequence[Alert]:
        """A product's own rules of a sort take the place of its website's."""
        own = self.of_products.get(product_id, ())
        taken = {_sort(alert) for alert in own}
        general = self.of_websites.get(website_id, ())
        return [*own, *(alert for alert in general if _sort(alert) not in taken)]


def _sort(alert: Alert) -> str:
    return "step" if alert.kind in AlertRule.STEPS else alert.kind


def lock_rulebook(website_ids: set[uuid.UUID], product_ids: Collection[uuid.UUID]) -> Rulebook:
    """Websites are locked before products, everywhere."""
    rows = Website.objects.filter(id__in=website_ids).order_by("id").select_for_update(no_key=True)
    fields = ("id", "client_id", "price_change_threshold_pct", "price_change_threshold_abs")
    known = list(rows.values_list(*fields))
    book = Rulebook(
        clients={row[0]: row[1] for row in known},
        defaults={row[0]: Rules(row[2], row[3]) for row in known},
    )
    found = _active(website_ids, product_ids)
    return _with_alerts(book, found, product_ids) if found else book


# The strictest step first: it gives the change its name.
ACTIVE = """
    SELECT * FROM monitoring_alertrule
    WHERE website_id = ANY(%s) AND is_active AND (product_id IS NULL OR product_id = ANY(%s))
    ORDER BY value DESC, id
"""


def _active(
    website_ids: Iterable[uuid.UUID], product_ids: Collection[uuid.UUID]
) -> list[AlertRule]:
    # Plain SQL: a batch asks for hundreds of products, mostly in vain.
    return list(AlertRule.objects.raw(ACTIVE, [list(website_ids), list(product_ids)]))


def _with_alerts(
    book: Rulebook, found: Sequence[AlertRule], product_ids: Collection[uuid.UUID]
) -> Rulebook:
    of_websites: dict[uuid.UUID, list[Alert]] = defaultdict(list)
    of_products: dict[uuid.UUID, list[Alert]] = defaultdict(list)
    for rule in found:
        if rule.product_id is None:
            of_websites[rule.website_id].append(as_alert(rule))
        else:
            of_products[rule.product_id].append(as_alert(rule))
    return replace(
        book,
        of_websites={key: tuple(alerts) for key, alerts in of_websites.items()},
        of_products={key: tuple(alerts) for key, alerts in of_products.items()},
        resting=_resting(found, product_ids),
    )


def as_alert(rule: AlertRule) -> Alert:
    return Alert(
        id=rule.pk,
        kind=rule.kind,
        value=rule.value or Decimal(0),
        direction=rule.direction,
        stock_from=frozenset(rule.stock_from),
        stock_to=frozenset(rule.stock_to),
        confirm=rule.confirm,
    )


def _resting(rules: Sequence[AlertRule], product_ids: Collection[uuid.UUID]) -> frozenset[Key]:
    rests = {rule.pk: dt.timedelta(minutes=rule.rearm_minutes) for rule in rules}
    slow = [pk for pk, rest in rests.items() if rest]
    if not slow:
        return frozenset()
    told = Change.objects.filter(
        alert_rule_id__in=slow, product_id__in=product_ids, status=Change.Status.CONFIRMED
    )
    last = told.values_list("alert_rule_id", "product_id").annotate(last=Max("occurred_at"))
    now = timezone.now()
    return frozenset(
        (rule, product) for rule, product, at in last if rule and at + rests[rule] > now
    )
