"""The end of a discovery: what is new, what vanished, what a rule approves; and who hears."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone

from accounts.audit import SYSTEM
from crawling.models import CrawlJob
from extraction.url_scores import family_of
from monitoring import candidates, runs, trials
from monitoring.approval_rules import approve_by_rule, reject_banned
from monitoring.found_urls import Source, State
from monitoring.models import FoundUrl, Product, Website

# So many pages of a folder must have been read, and so many of them be products, before
# those that were not read count as products too.
ENOUGH_READ = 5
MOST_ARE = 0.8
# What a pattern alone is worth, at most.
PATTERN_WORTH = 0.6
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Family:
    """Pages of one folder: how many were read, how many of them are products."""

    read: int
    products: int

    @property
    def share(self) -> float:
        return self.products / self.read if self.read else 0

    @property
    def is_of_products(self) -> bool:
        return self.read >= ENOUGH_READ and self.share >= MOST_ARE


def finish_discovery(job: CrawlJob) -> None:
    website = runs.lock_website_of(job)
    if website is None:
        return
    _keep_patterns(job, website)
    capped = _close_waiting(job)
    vanished = _find_vanished(job, website) if _is_whole(job, capped) else 0
    _sum_up(website)
    reject_banned(website, actor=SYSTEM)
    approved = approve_by_rule(website)
    pending = website.products.filter(approval=Product.Approval.PENDING).count()
    runs.tell(
        website,
        "website.discovered",
        job,
        {
            "job_id": str(job.pk),
            "candidates": pending,
            "new": _count_new(job, website),
            "vanished": vanished,
            "approved_by_rule": approved,
            "pages_read": job.processed,
            "is_complete": not capped,
            "test_crawl": website.test_crawl,
        },
    )


def _keep_patterns(job: CrawlJob, website: Website) -> None:
    """Pages beyond the limit, in folders where nearly every page that was read is a product."""
    waiting = FoundUrl.objects.of_job(job).filter(state=State.WAITING, purpose="discover")
    families = _families(job)
    good = {name: one for name, one in families.items() if one.is_of_products}
    if not good:
        return
    rows = [row for row in waiting.only("id", "url") if family_of(row.url) in good]
    found = []
    for row in rows:
        name = family_of(row.url)
        one = good[name]
        reason = f"URL pattern {name}…: {one.products} of {one.read} pages read are products"
        score = round(PATTERN_WORTH * one.share, 3)
        found.append(candidates.from_pattern(website.pk, row.url, score, reason))
    for at in range(0, len(found), BATCH):
        candidates.keep(website.pk, found[at : at + BATCH])
        ids = [row.pk for row in rows[at : at + BATCH]]
        FoundUrl.objects.filter(id__in=ids).update(
            state=State.LISTED, reason="not read: a candidate because of its folder"
        )


def _families(job: CrawlJob) -> dict[str, Family]:
    read: Counter[str] = Counter()
    products: Counter[str] = Counter()
    told = (State.PRODUCT, State.DUPLICATE, State.NO_PRODUCT)
    rows = FoundUrl.objects.of_job(job).filter(purpose="discover", state__in=told)
    for url, state in rows.values_list("url", "state"):
        name = family_of(url)
        read[name] += 1
        products[name] += state != State.NO_PRODUCT
    return {name: Family(read[name], products[name]) for name in read}


def _close_waiting(job: CrawlJob) -> bool:
    """Say of what still waits that it was not read; answers whether there was any."""
    limit = job.parameters["max_pages"]
    left = FoundUrl.objects.of_job(job).filter(state__in=(State.WAITING, State.ASKED))
    reason = f"not read: the limit of {limit} pages (max_pages) was reached"
    closed = left.update(state=State.OVER_LIMIT, reason=reason)
    listed = FoundUrl.objects.of_job(job).filter(state=State.LISTED).exclude(source=Source.FEED)
    return bool(closed or job.parameters.get("urls_dropped") or listed.exists())


def _is_whole(job: CrawlJob, capped: bool) -> bool:  # noqa: FBT001
    """Only a discovery that saw everything can say that something is not there any more."""
    broken = FoundUrl.objects.of_job(job).filter(state=State.FAILED).exclude(source=Source.GUESS)
    whole = not capped and job.status in runs.GOOD
    return whole and set(job.parameters["sources"]) == set(runs.SOURCES) and not broken.exists()


SEE_AGAIN = """
    UPDATE monitoring_product p SET discovered_at = %s, vanished_at = NULL
    FROM monitoring_foundurl f
    WHERE f.website_id = %s AND f.job_id = %s AND f.state <> 'failed'
      AND p.website_id = f.website_id AND p.url_hash = f.url_hash
"""


def _find_vanished(job: CrawlJob, website: Website) -> int:
    """Products that nothing in the shop leads to any more."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(SEE_AGAIN, [now, website.pk, job.pk])
    unseen = website.products.filter(
        Q(discovered_at=None) | Q(discovered_at__lt=job.created_at), vanished_at=None
    )
    return unseen.filter(created_at__lt=job.created_at).update(vanished_at=now)


def _count_new(job: CrawlJob, website: Website) -> int:
    return website.products.filter(created_at__gte=job.created_at).count()


def _sum_up(website: Website) -> None:
    counts: dict[str, int] = defaultdict(int)
    groups = website.products.values_list("extraction_method").annotate(n=Count("id"))
    for method, count in groups.order_by():
        if method not in ("", "url"):
            counts[method] += count
    website.test_crawl = trials.summed_up(website.test_crawl, dict(counts))
    Website.objects.filter(pk=website.pk).update(
        test_crawl=website.test_crawl, updated_at=timezone.now()
    )
