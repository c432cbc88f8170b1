"""Why a product's latest check was news, or why nobody heard of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from crawling.models import CrawlTask
from monitoring import alerting
from monitoring.changes import Rules, change_pct, plain
from monitoring.models import AlertRule, Change, Product, ProductHistory

LOOKBACK = dt.timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: str
    summary: str
    rules: list[str]
    baseline: dict[str, Any]
    change: Change | None = None
    check: ProductHistory | None = None
    last_failure: dict[str, Any] | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


def explain(product: Product) -> Explanation:
    check = _last_check(product)
    change = product.changes.order_by("-occurred_at", "-id").first()
    failure = _last_failure(product, check)
    rules = _rules(product)
    verdict, summary = _verdict(product, check, change, failure, rules)
    return Explanation(
        verdict=verdict,
        summary=summary,
        rules=_in_words(product, rules),
        baseline=_baseline(product),
        change=change,
        check=check,
        last_failure=failure,
        evidence=_evidence(product, check),
    )


def _last_check(product: Product) -> ProductHistory | None:
    rows = ProductHistory.objects.filter(
        product_id=product.pk, variant_key="", crawl_timestamp__gte=timezone.now() - LOOKBACK
    )
    return rows.order_by("-crawl_timestamp").first()


def _last_failure(product: Product, check: ProductHistory | None) -> dict[str, Any] | None:
    tasks = CrawlTask.objects.filter(
        website_id=product.website_id, url_hash=product.url_hash, status="failed"
    )
    if check is not None:
        tasks = tasks.filter(completed_at__gt=check.crawl_timestamp)
    task = tasks.order_by("-completed_at").first()
    if task is None:
        return None
    return {
        "at": task.completed_at,
        "category": task.error_category,
        "message": task.error_message,
    }


def _rules(product: Product) -> Rules:
    found = AlertRule.objects.filter(website_id=product.website_id, is_active=True)
    mine = [rule for rule in found if rule.product_id in (None, product.pk)]
    website = product.website
    alerts = tuple(alerting.as_alert(rule) for rule in mine)
    pct, amount = website.price_change_threshold_pct, website.price_change_threshold_abs
    return Rules(pct, amount, alerts)


def _in_words(product: Product, rules: Rules) -> list[str]:
    named = [f"{a.kind} {plain(a.value)} {a.direction}" for a in rules.alerts]
    if any(alert.kind in AlertRule.STEPS for alert in rules.alerts):
        return named
    words = [f"percent ≥ {rules.threshold_pct} (the website's threshold)"]
    if rules.threshold_abs is not None:
        words.append(f"absolute ≥ {plain(rules.threshold_abs)} (the website's threshold)")
    return words + named


def _verdict(
    product: Product,
    check: ProductHistory | None,
    change: Change | None,
    failure: dict[str, Any] | None,
    rules: Rules,
) -> tuple[str, str]:
    if product.delisted_at is not None:
        return "delisted", "The page was gone at two looks in a row."
    if product.held_reason:
        return "held", f"Waits for a second look: {product.held_reason}."
    if failure is not None:
        return "failed", f"The last look failed and changed nothing: {failure['message']}."
    if check is None:
        return "unseen", "No check yet: the product waits for its first crawl."
    if change is not None and change.occurred_at >= check.crawl_timestamp:
        return change.status, f"{change.kind}: {change.old} → {change.new} under “{change.rule}”."
    return "silent", _why_silent(product, check, rules)


def _why_silent(product: Product, check: ProductHistory, rules: Rules) -> str:
    told, price = product.notified_price, product.current_price
    if told is None:
        return "The page has named no price yet, so there is nothing to compare with."
    if check.price is None:
        return "The page named no price; the known one stays."
    if price == told:
        return f"The price is {plain(told)}, as the client was last told."
    assert price is not None
    pct = change_pct(told, price)
    step = "" if pct is None else f" ({pct:+.2f} %)"
    return (
        f"{plain(told)} → {plain(price)}{step} since the client was last told: "
        f"no rule is crossed yet. Further steps in the same direction add up."
    )


def _baseline(product: Product) -> dict[str, Any]:
    price = product.notified_price
    return {
        "price": None if price is None else plain(price),
        "currency": product.notified_currency,
        "stock_status": product.notified_stock_status,
    }


def _evidence(product: Product, check: ProductHistory | None) -> dict[str, Any]:
    page_hash = check.page_hash if check else product.page_hash
    return {
        "page_hash": page_hash,
        "page_url": f"/api/v1/stored-pages/{page_hash}" if page_hash else None,
        "history_id": str(check.pk) if check else None,
        "provenance": product.provenance,
    }
