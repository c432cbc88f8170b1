from __future__ import annotations

from crawling.models.domains import Domain, LedgerEntry
from crawling.models.jobs import CrawlJob
from crawling.models.pages import PageValidator, StoredPage
from crawling.models.profiles import CrawlProfile
from crawling.models.proxies import DomainProxy, Proxy
from crawling.models.tasks import CrawlError, CrawlTask

__all__ = [
    "CrawlError",
    "CrawlJob",
    "CrawlProfile",
    "CrawlTask",
    "Domain",
    "DomainProxy",
    "LedgerEntry",
    "PageValidator",
    "Proxy",
    "StoredPage",
]
