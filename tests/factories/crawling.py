# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyFunction,
    SelfAttribute,
    Sequence,
    SubFactory,
    Trait,
)
from factory.django import DjangoModelFactory

from common.urls import normalize_url, url_hash
from crawling.models import (
    CrawlError,
    CrawlJob,
    CrawlProfile,
    CrawlTask,
    Domain,
    DomainProxy,
    Proxy,
)
from tests.factories.accounts import ClientFactory


class DomainFactory(DjangoModelFactory[Domain]):
    class Meta:
        model = Domain

    class Params:
        blocked = Trait(is_blocked=True, blocked_reason="by an operator")

    host = Sequence(lambda n: f"shop{n}.example")
    base_url = LazyAttribute(lambda domain: f"https://{domain.host}")


class ProfileFactory(DjangoModelFactory[CrawlProfile]):
    class Meta:
        model = CrawlProfile

    client = SubFactory(ClientFactory)
    name = Sequence(lambda n: f"Profile {n}")


class JobFactory(DjangoModelFactory[CrawlJob]):
    class Meta:
        model = CrawlJob

    class Params:
        running = Trait(status="running", started_at=LazyFunction(timezone.now))
        finished = Trait(
            status="success",
            started_at=LazyFunction(timezone.now),
            completed_at=LazyFunction(timezone.now),
        )

    client = SubFactory(ClientFactory)
    kind = "monitor"
    triggered_by = "manual"


class TaskFactory(DjangoModelFactory[CrawlTask]):
    class Meta:
        model = CrawlTask

    job = SubFactory(JobFactory)
    domain = SubFactory(DomainFactory)
    client = SelfAttribute("job.client")
    website_id = SelfAttribute("job.website_id")
    purpose = "product"
    url = Sequence(lambda n: f"https://shop.example/p/{n}")
    normalized_url = LazyAttribute(lambda task: normalize_url(task.url))
    url_hash = LazyAttribute(lambda task: url_hash(task.normalized_url))
    scheduled_at = LazyFunction(timezone.now)


class CrawlErrorFactory(DjangoModelFactory[CrawlError]):
    class Meta:
        model = CrawlError

    task = SubFactory(TaskFactory)
    domain = SelfAttribute("task.domain")
    category = "timeout"
    message = "no answer within 30 s"
    fingerprint = "x"
    occurred_at = LazyFunction(timezone.now)


class ProxyFactory(DjangoModelFactory[Proxy]):
    class Meta:
        model = Proxy

    host = Sequence(lambda n: f"proxy{n}.example")
    port = 3128


class DomainProxyFactory(DjangoModelFactory[DomainProxy]):
    class Meta:
        model = DomainProxy

    domain = SubFactory(DomainFactory)
    proxy = SubFactory(ProxyFactory)
