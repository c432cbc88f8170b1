"""Rows for every screen of the console, and who looks at them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import models
from django.test import Client as Browser
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone
from django_celery_results.models import TaskResult

from accounts import audit
from accounts.models import FailedLogin, User
from monitoring.models import AlertRule, FoundUrl, ParserHealth, ProductMatch
from obsrv.first_start import ensure_groups
from obsrv.schedules import ensure_schedules
from tests.crawling.work import stored_page
from tests.factories.accounts import ApiKeyFactory, UserFactory
from tests.factories.crawling import (
    CrawlErrorFactory,
    DomainProxyFactory,
    JobFactory,
    ProxyFactory,
)
from tests.factories.monitoring import (
    ChangeFactory,
    HistoryFactory,
    ProductFactory,
    WebsiteFactory,
)
from tests.factories.notifications import ChannelFactory, DeliveryFactory, EndpointFactory


def make_rows(count: int = 1, *, start: int = 0) -> None:
    """So many for each screen, each with others behind it."""
    ensure_schedules()
    for number in range(start, start + count):
        _make_website(number)
        job = JobFactory.create()
        proxy = ProxyFactory.create(pool=f"pool {number % 3}")
        task = {"job": job, "status": "failed", "stored_page": stored_page(), "proxy": proxy}
        error = CrawlErrorFactory.create(
            fingerprint=f"{number:064x}", **{f"task__{name}": value for name, value in task.items()}
        )
        DomainProxyFactory.create(domain=error.domain, proxy=proxy)
        client = job.client
        assert client is not None
        endpoint = EndpointFactory.create(client=client)
        DeliveryFactory.create(endpoint=endpoint, status="success")
        ChannelFactory.create(client=client)
        ApiKeyFactory.create(client=client)
        FailedLogin.objects.create(
            username=f"ana{number}", address="x", failures=5, last_at=timezone.now()
        )
        TaskResult.objects.create(task_id=str(number))
        audit.record(audit.SYSTEM, "create", client, client_id=client.pk)
        UserFactory.create(username=f"colleague{number}")
        Group.objects.create(name=f"group {number}")


def _make_website(number: int) -> None:
    website = WebsiteFactory.create(active=True)
    left, right = sorted(
        ProductFactory.create_batch(2, website=website, approved=True), key=lambda one: one.pk
    )
    ProductMatch.objects.create(left=left, right=right, score=0.9)
    ProductFactory.create(website=website, pending=True, duplicate_of=left)
    HistoryFactory.create(product=left, price_changed=True)
    ChangeFactory.create(product=left)
    AlertRule.objects.create(website=website, product=left, kind="any")
    now = timezone.now()
    FoundUrl.objects.create(
        website=website,
        url=f"https://shop.example/{number}",
        url_hash=f"{number:064x}",
        job_id=website.pk,
        purpose="discover",
        source="seed",
        first_seen_at=now,
        last_seen_at=now,
    )
    ParserHealth.objects.create(host=f"shop{number}.example", usual_pct=99, last_pct=40)


def member_of(group: str) -> User:
    ensure_groups()
    user = UserFactory.create(username=group, is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    return user


def browser_of(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


def request_of(user: User) -> Any:
    request = RequestFactory().get("/")
    request.user = user
    return request


def screens() -> list[type[models.Model]]:
    return sorted(admin.site._registry, key=lambda model: model._meta.label)


def screen_of(model: type[models.Model]) -> Any:
    return admin.site._registry[model]


def address(model: type[models.Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def row_of(model: type[models.Model]) -> Any:
    row = screen_of(model).get_queryset(request_of(UserFactory.build(superuser=True))).first()
    assert row is not None, f"make_rows() makes none for {model._meta.label}"
    return row
