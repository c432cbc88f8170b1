"""What the console's sidebar offers, to those who may see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse_lazy

Item = dict[str, Any]


def _may_view(app: str, model: str) -> Callable[[HttpRequest], bool]:
    def permission(request: HttpRequest) -> bool:
        return request.user.has_perm(f"{app}.view_{model}")

    return permission


def _item(title: str, icon: str, app: str, model: str) -> Item:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": _may_view(app, model),
    }


def _at_products(request: HttpRequest) -> bool:
    """Not at the debugger, whose address lies below theirs."""
    products = str(reverse_lazy("admin:monitoring_product_changelist"))
    debugger = str(reverse_lazy("admin:monitoring_product_debugger"))
    return request.path.startswith(products) and request.path != debugger


def _at_errors(request: HttpRequest) -> bool:
    """Not at their groups, whose address lies below theirs."""
    groups = str(reverse_lazy("admin:crawling_crawlerror_groups"))
    errors = str(reverse_lazy("admin:crawling_crawlerror_changelist"))
    return request.path.startswith(errors) and request.path != groups


def _group(title: str, *items: Item) -> Item:
    return {"title": title, "separator": True, "items": list(items)}


NAVIGATION = [
    _group(
        "Review",
        _item("Review queue", "rule", "monitoring", "candidate"),
        _item("Changes", "trending_down", "monitoring", "change"),
        _item("Look-alikes", "join_inner", "monitoring", "productmatch"),
    ),
    _group(
        "Monitoring",
        _item("Websites", "storefront", "monitoring", "website"),
        _item("Products", "inventory_2", "monitoring", "product") | {"active": _at_products},
        _item("History", "timeline", "monitoring", "producthistory"),
        {
            "title": "Extraction debugger",
            "icon": "troubleshoot",
            "link": reverse_lazy("admin:monitoring_product_debugger"),
            "permission": _may_view("monitoring", "product"),
        },
        _item("Alert rules", "notifications_active", "monitoring", "alertrule"),
        _item("Found URLs", "travel_explore", "monitoring", "foundurl"),
        _item("Parser health", "ecg_heart", "monitoring", "parserhealth"),
    ),
    _group(
        "Crawling",
        _item("Jobs", "playlist_play", "crawling", "crawljob"),
        _item("Tasks", "list_alt", "crawling", "crawltask"),
        _item("Domains", "dns", "crawling", "domain"),
        _item("Proxies", "vpn_lock", "crawling", "proxy"),
        _item("Stored pages", "description", "crawling", "storedpage"),
        _item("Errors", "error", "crawling", "crawlerror") | {"active": _at_errors},
        _item("Error groups", "stacks", "crawling", "crawlerror")
        | {"link": reverse_lazy("admin:crawling_crawlerror_groups")},
    ),
    _group(
        "Notifications",
        _item("Webhooks", "webhook", "notifications", "webhookendpoint"),
        _item("Events", "campaign", "notifications", "event"),
        _item("Deliveries", "outgoing_mail", "notifications", "delivery"),
        _item("Channels", "forum", "notifications", "channel"),
    ),
    _group(
        "Accounts",
        _item("Clients", "business_center", "accounts", "client"),
        _item("API keys", "key", "accounts", "apikey"),
        _item("Operators", "person", "accounts", "user"),
        _item("Groups", "group", "auth", "group"),
        _item("Locked logins", "lock_clock", "accounts", "failedlogin"),
        _item("Audit log", "history", "accounts", "auditentry"),
    ),
    _group(
        "System",
        {
            "title": "How it is doing",
            "icon": "monitor_heart",
            "link": reverse_lazy("system"),
            "permission": lambda request: request.user.has_perm("accounts.view_system"),
        },
        _item("Schedules", "schedule", "django_celery_beat", "periodictask"),
        _item("Cron lines", "calendar_month", "django_celery_beat", "crontabschedule"),
        _item("Intervals", "timer", "django_celery_beat", "intervalschedule"),
        _item("Task results", "task_alt", "django_celery_results", "taskresult"),
    ),
]
