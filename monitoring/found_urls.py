"""URLs that discovery came across: which come next, and why each was read or not."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.utils import timezone

from common.errors import Refused
from common.ids import uuid7
from common.urls import MAX_URL_CHARS, normalize_url, parse_url, url_hash
from crawling import frontier
from crawling.fetching import same_shop
from crawling.frontier import Target
from crawling.models import CrawlJob, CrawlTask
from crawling.robots import OPEN, Robots
from extraction.url_scores import is_never_asked, score_url
from monitoring.models import FoundUrl, Website
from monitoring.url_patterns import first_match

State = FoundUrl.State
Source = FoundUrl.Source
# Links from page to page that are followed: home → category → its further page → product.
MAX_DEPTH = 3
# Sitemap index → sitemap.
MAX_SITEMAP_DEPTH = 1
# Asked for ahead: what is found meanwhile may be better than what was found first.
WAVE = 100
BATCH = 5000


@dataclass(frozen=True, slots=True)
class Sighting:
    """A URL somewhere in a shop, as it can be asked for."""

    url: str
    digest: str
    purpose: str
    source: str
    depth: int
    score: float
    state: str = State.WAITING
    reason: str = ""
    lastmod: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a shop may be read."""

    base_url: str
    banned: Sequence[str] = ()
    robots: Robots = OPEN

    def sight(
        self,
        url: str,
        *,
        purpose: str = "discover",
        source: str,
        depth: int = 0,
        score: float | None = None,
        lastmod: dt.datetime | None = None,
    ) -> Sighting | None:
        """None for what is no URL."""
        asked = askable(url)
        if asked is None:
            return None
        looks, why = score_url(asked)
        state, reason = self._verdict(asked, purpose, depth)
        return Sighting(
            asked,
            url_hash(normalize_url(asked)),
            purpose,
            source,
            depth,
            looks if score is None else score,
            state,
            reason or why,
            lastmod,
        )

    def _verdict(self, url: str, purpose: str, depth: int) -> tuple[str, str]:
        if not same_shop(self.base_url, url):
            return State.OTHER_SITE, "on another host than the shop"
        if banned := first_match(self.banned, url):
            return State.BANNED, f"the website's rules ban {banned}"[:255]
        if purpose == "discover" and is_never_asked(url):
            return State.EXCLUDED, "carts, accounts and the like are never asked for"
        deepest = MAX_SITEMAP_DEPTH if purpose == "sitemap" else MAX_DEPTH
        if purpose != "feed" and depth > deepest:
            return State.TOO_DEEP, f"more than {deepest} steps from where discovery starts"
        if not self.robots.allows(url):
            return State.ROBOTS, "robots.txt of the shop forbids it"
        return State.WAITING, ""


def askable(link: str) -> str | None:
    """The link as it can be asked for; None for one that is malformed or too long."""
    try:
        parsed = parse_url(link, allow_local=True)
    except Refused:
        return None
    return parsed if len(normalize_url(parsed)) <= MAX_URL_CHARS else None


REMEMBER = """
    INSERT INTO monitoring_foundurl AS known
        (id, website_id, url, url_hash, job_id, purpose, source, depth, score, lastmod, state,
         reason, first_seen_at, last_seen_at)
    SELECT v.id, %s, v.url, v.url_hash, %s, v.purpose, v.source, v.depth, v.score, v.lastmod,
           v.state, v.reason, %s, %s
    FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::text[], %s::int[],
                %s::float[], %s::timestamptz[], %s::text[], %s::text[])
        AS v(id, url, url_hash, purpose, source, depth, score, lastmod, state, reason)
    ON CONFLICT (website_id, url_hash) DO UPDATE SET
        url = EXCLUDED.url, job_id = EXCLUDED.job_id, purpose = EXCLUDED.purpose,
        source = EXCLUDED.source, depth = EXCLUDED.depth, score = EXCLUDED.score,
        lastmod = coalesce(EXCLUDED.lastmod, known.lastmod), state = EXCLUDED.state,
        reason = EXCLUDED.reason, last_seen_at = EXCLUDED.last_seen_at
    WHERE known.job_id <> EXCLUDED.job_id
"""
# What is a product already needs no second look to know that.
MARK_KNOWN = """
    UPDATE monitoring_foundurl f
    SET state = 'known', reason = 'a product already, ' || p.approval
    FROM monitoring_product p
    WHERE f.website_id = %s AND f.job_id = %s AND f.state = 'waiting' AND f.purpose = 'discover'
      AND f.depth > 0 AND p.website_id = f.website_id AND p.url_hash = f.url_hash
"""


def remember(job: CrawlJob, sightings: Sequence[Sighting]) -> int:
    """Keep what was seen, each URL once in a discovery; answers how many were left out
    because there are too many."""
    fresh = list({one.digest: one for one in reversed(sightings)}.values())[::-1]
    if not fresh:
        return 0
    known = FoundUrl.objects.of_job(job).count()
    room = max(0, settings.DISCOVERY_MAX_URLS - known)
    kept, now = fresh[:room], timezone.now()
    with connection.cursor() as cursor:
        for at in range(0, len(kept), BATCH):
            part = kept[at : at + BATCH]
            cursor.execute(
                REMEMBER,
                [job.website_id, job.pk, now, now, [uuid7() for _ in part], *_columns(part)],
            )
        cursor.execute(MARK_KNOWN, [job.website_id, job.pk])
    return len(fresh) - len(kept)


def _columns(part: Sequence[Sighting]) -> list[list[object]]:
    names = ("url", "digest", "purpose", "source", "depth", "score", "lastmod", "state", "reason")
    return [[getattr(one, name) for one in part] for name in names]


SETTLE = """
    UPDATE monitoring_foundurl f SET state = v.state, reason = v.reason
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS v(url_hash, state, reason)
    WHERE f.website_id = %s AND f.url_hash = v.url_hash
"""


def settle(website_id: uuid.UUID, outcomes: dict[str, tuple[str, str]]) -> None:
    """What became of URLs that were asked for."""
    rows = [(digest, state, reason[:255]) for digest, (state, reason) in outcomes.items()]
    with connection.cursor() as cursor:
        cursor.execute(SETTLE, [*(list(column) for column in zip(*rows, strict=True)), website_id])


def ask_for_next(job: CrawlJob, *, ending: int = 0, unasked: int = 0) -> int:
    """Queue the best of what waits, and never more pages than the job may read. ``ending``
    tasks come to an end right now; ``unasked`` of them were never asked for."""
    tasks, most = CrawlTask.objects.filter(job=job), int(job.parameters["max_pages"])
    spent = tasks.exclude(error_category=CrawlTask.Category.ROBOTS).count() - unasked
    open_tasks = tasks.exclude(status__in=CrawlTask.TERMINAL).count() - ending
    chosen = _choose(job, min(most - spent, WAVE - open_tasks), lists_first=2 * spent < most)
    for purpose in sorted({one.purpose for one in chosen}):
        mine = [one for one in chosen if one.purpose == purpose]
        targets = [Target(url=one.url, depth=one.depth, score=one.score) for one in mine]
        frontier.submit(job, purpose=purpose, targets=targets)
    asked = FoundUrl.objects.filter(id__in=[one.pk for one in chosen])
    asked.update(state=State.ASKED)
    return len(chosen)


def _choose(job: CrawlJob, room: int, *, lists_first: bool) -> list[FoundUrl]:
    """Sitemaps and the shop's own lists are waited for, since they may spare reading pages;
    but half of what may be read is for pages."""
    if room <= 0:
        return []
    mine = FoundUrl.objects.of_job(job)
    waiting = mine.filter(state=State.WAITING).order_by("-score", "depth", "id")
    lists = waiting.exclude(purpose="discover")
    under_way = mine.filter(state=State.ASKED).exclude(purpose="discover")
    if lists_first and (lists.exists() or under_way.exists()):
        return list(lists[:room])
    pages = list(waiting.filter(purpose="discover")[:room])
    return pages + list(lists[: room - len(pages)])


def rules_of(website: Website, robots: Robots = OPEN) -> Rules:
    return Rules(website.base_url, tuple(website.banned_patterns), robots)
