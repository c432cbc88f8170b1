"""Discovery: pages, sitemaps and the shop's own lists become candidates, and lead on.

Every URL that is seen is a ``FoundUrl``; the best of those that wait are asked for, until
the job has read as many pages as it may. Sitemaps and lists count as pages.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.utils import timezone

from common.urls import origin_of
from crawling import robots as robots_files
from crawling.fetching import Failure, Page
from crawling.handover import Accepted, Store, Verdict, is_asked_again
from crawling.models import CrawlJob, CrawlTask, Domain
from crawling.robots import OPEN, Robots
from extraction.canonical import canonical_link
from extraction.feeds import feed_url, read_feed
from extraction.items import NoProduct, ProductItem
from extraction.links import page_links
from extraction.scripted import looks_script_built
from extraction.sitemaps import NotASitemap, read_sitemap
from extraction.url_scores import score_url
from monitoring import candidates, found_urls, trials
from monitoring.found_urls import Rules, Sighting, Source, State
from monitoring.models import Product, Website
from monitoring.reading import Reader, reader_for

# Sitemaps and lists before pages; a sitemap named after products before others.
PRODUCT_SITEMAP, SITEMAP, SIDE_SITEMAP, FEED = 1.0, 0.9, 0.2, 1.2
SIDE_SITEMAPS = ("blog", "post", "news", "page", "image", "video", "author", "tag", "store")
# A script-built page whose address looks like a product's.
SCRIPTED_SCORE = 0.45
LIKELY = 0.6
Item = ProductItem | NoProduct


@dataclass(slots=True)
class Reading:
    """What one page means to a discovery."""

    page: Page
    state: str
    reason: str
    products: list[Product] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    verdict: trials.Verdict | None = None
    failure: Failure | None = None


def receive_pages(pages: Sequence[Page]) -> Store:
    rules, reader = _rules_by_website(pages), reader_for(pages)
    store = _storing([_read(page, rules, reader) for page in pages])

    def store_and_learn(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        verdicts = store(accepted)
        reader.keep_learned()
        return verdicts

    return store_and_learn


def receive_failures(pages: Sequence[Page]) -> Store:
    """A sitemap or list that was only guessed and is not there is no failure."""
    return _storing([_failed(page) for page in pages if not _is_retried(page)])


def _is_retried(page: Page) -> bool:
    return is_asked_again(page.claim, page.failure)


def _storing(readings: Sequence[Reading]) -> Store:
    def store(accepted: Accepted) -> dict[uuid.UUID, Verdict]:
        kept = [reading for reading in readings if reading.page.claim.id in accepted]
        return _store(kept)

    return store


def _read(page: Page, rules: dict[uuid.UUID, Rules], reader: Reader) -> Reading:
    # Also what did not change: this website may see it for the first time, and what it
    # leads to may have changed.
    website_id = page.claim.website_id
    if website_id is None or website_id not in rules:
        return Reading(page, State.READ, "")
    if page.claim.purpose == "sitemap":
        return _read_sitemap(page, rules[website_id])
    if page.claim.purpose == "feed":
        return _read_list(page, website_id, rules[website_id])
    return _read_page(page, website_id, rules[website_id], reader.read(page))


def _read_page(page: Page, website_id: uuid.UUID, rules: Rules, item: Item) -> Reading:
    body = page.content()
    links = page_links(body, page.url) if isinstance(item, NoProduct) else []
    reading = Reading(page, State.NO_PRODUCT, item.reason)
    if page.claim.depth == 0:
        reading.verdict = trials.verdict_on(page, item, body, len(links))
    if isinstance(item, ProductItem):
        reading.state = State.PRODUCT
        own = item.canonical_url or canonical_link(body, page.url)
        reading.products = [candidates.from_page(website_id, page, item, own)]
    elif products := _scripted(website_id, page, body):
        reading.state, reading.products = State.LISTED, products
    reading.sightings = _sight_all(rules, links, depth=page.claim.depth + 1)
    return reading


def _scripted(website_id: uuid.UUID, page: Page, body: bytes) -> list[Product]:
    """A page that only a browser can show, at an address like a product's."""
    score, why = score_url(page.url)
    if score < LIKELY or not looks_script_built(body):
        return []
    reason = f"{why}; the page needs JavaScript"
    return [candidates.from_pattern(website_id, page.url, SCRIPTED_SCORE, reason)]


def _read_sitemap(page: Page, rules: Rules) -> Reading:
    try:
        sitemap = read_sitemap(page.content())
    except NotASitemap as error:
        return Reading(page, State.FAILED, f"not a sitemap: {error}")
    depth = page.claim.depth + 1
    found = [
        rules.sight(
            entry.url,
            purpose="sitemap",
            source=Source.SITEMAP,
            depth=depth,
            score=_sitemap_score(entry.url),
            lastmod=entry.lastmod,
        )
        for entry in sitemap.children
    ]
    found += [
        rules.sight(entry.url, source=Source.SITEMAP, depth=1, lastmod=entry.lastmod)
        for entry in sitemap.pages
    ]
    cut = ", and more than a file may hold" if sitemap.is_cut else ""
    reason = f"{len(sitemap.pages)} pages, {len(sitemap.children)} sitemaps{cut}"
    return Reading(page, State.READ, reason, sightings=[one for one in found if one])


def _sitemap_score(url: str) -> float:
    name = url.rpartition("/")[2].lower()
    if "product" in name or "produkt" in name:
        return PRODUCT_SITEMAP
    return SIDE_SITEMAP if any(word in name for word in SIDE_SITEMAPS) else SITEMAP


def _read_list(page: Page, website_id: uuid.UUID, rules: Rules) -> Reading:
    feed = read_feed(page.content(), page.url)
    if feed is None:
        return Reading(page, State.READ, "no list of products here")
    reading = Reading(page, State.READ, f"{len(feed.items)} products in the shop's own list")
    for item in feed.items:
        product = candidates.from_list(website_id, feed.platform, item)
        sighting = rules.sight(item.url, source=Source.FEED, depth=1)
        if product is None or sighting is None:
            continue
        if sighting.state == State.WAITING:
            reading.products.append(product)
            sighting = replace(sighting, state=State.LISTED, reason=product.discovery_reason)
        reading.sightings.append(sighting)
    if feed.next_url and (further := _sight_list(rules, feed.next_url)):
        reading.sightings.append(further)
    return reading


def _sight_list(rules: Rules, url: str) -> Sighting | None:
    return rules.sight(url, purpose="feed", source=Source.FEED, score=FEED)


def _sight_all(rules: Rules, links: Iterable[str], *, depth: int) -> list[Sighting]:
    seen = (rules.sight(link, source=Source.LINK, depth=depth) for link in links)
    return [one for one in seen if one]


def _failed(page: Page) -> Reading:
    assert page.failure is not None
    verdict = trials.verdict_on_failure(page)
    by_robots = page.failure.category == CrawlTask.Category.ROBOTS
    state = State.ROBOTS if by_robots else State.FAILED
    reading = Reading(page, state, page.failure.message, verdict=verdict, failure=page.failure)
    if page.claim.purpose != "discover" and page.status is not None:
        reading.failure = None
    return reading


def _store(readings: Sequence[Reading]) -> dict[uuid.UUID, Verdict]:
    by_job: dict[uuid.UUID, list[Reading]] = defaultdict(list)
    for reading in readings:
        by_job[reading.page.claim.job_id].append(reading)
    websites = _lock_websites(readings)
    verdicts: dict[uuid.UUID, Verdict] = {}
    for job in CrawlJob.objects.filter(id__in=by_job).order_by("id"):
        website = websites.get(job.website_id or uuid.UUID(int=0))
        if website is None:
            verdicts |= {r.page.claim.id: Verdict() for r in by_job[job.pk]}
        else:
            verdicts |= _store_job(job, website, by_job[job.pk])
    return verdicts


def _store_job(
    job: CrawlJob, website: Website, readings: Sequence[Reading]
) -> dict[uuid.UUID, Verdict]:
    made = _keep_products(website, readings)
    _keep_verdict(job, website, readings)
    sightings = _plan(job, website) if _is_to_plan(job, readings) else []
    sightings += [one for reading in readings for one in reading.sightings]
    if "links" not in job.parameters["sources"]:
        sightings = [one for one in sightings if one.source != Source.LINK]
    dropped = found_urls.remember(job, sightings)
    if dropped:
        job.parameters["urls_dropped"] = job.parameters.get("urls_dropped", 0) + dropped
    CrawlJob.objects.filter(pk=job.pk).update(parameters=job.parameters)
    unasked = sum(reading.state == State.ROBOTS for reading in readings)
    found_urls.ask_for_next(job, ending=len(readings), unasked=unasked)
    return {
        r.page.claim.id: Verdict(changes=made[r.page.claim.id], failure=r.failure) for r in readings
    }


def _keep_products(website: Website, readings: Sequence[Reading]) -> dict[uuid.UUID, int]:
    """How many new candidates each task brought."""
    found = [product for reading in readings for product in reading.products]
    kept = candidates.keep(website.pk, found)
    outcomes: dict[str, tuple[str, str]] = {}
    made: dict[uuid.UUID, int] = {}
    for reading in readings:
        mine = {product.url_hash for product in reading.products}
        made[reading.page.claim.id] = len(mine & kept.made)
        twin = next((kept.folded[digest] for digest in mine if digest in kept.folded), None)
        if twin and reading.state == State.PRODUCT:
            reading.state, reading.reason = State.DUPLICATE, f"the same page as {twin}"
        outcomes[reading.page.claim.url_hash] = (reading.state, reading.reason)
    found_urls.settle(website.pk, outcomes)
    return made


def _keep_verdict(job: CrawlJob, website: Website, readings: Sequence[Reading]) -> None:
    """Of the first seed page, which is the test crawl."""
    for reading in readings:
        if reading.verdict and reading.page.claim.url_hash == job.parameters["test_page"]:
            website.test_crawl = reading.verdict
            job.parameters["platform"] = reading.verdict["platform"]
            Website.objects.filter(pk=website.pk).update(
                test_crawl=reading.verdict, updated_at=timezone.now()
            )


def _is_to_plan(job: CrawlJob, readings: Sequence[Reading]) -> bool:
    return any(r.page.claim.url_hash == job.parameters["test_page"] for r in readings)


def _plan(job: CrawlJob, website: Website) -> list[Sighting]:
    """Once the test page came, robots.txt is known: where its sitemaps are; and so is
    whether the platform keeps a list."""
    origin, sources = origin_of(website.base_url), job.parameters["sources"]
    rules = found_urls.rules_of(website, _robots_of(website.base_url))
    found: list[Sighting | None] = []
    if "sitemap" in sources:
        named = rules.robots.sitemaps
        source = Source.ROBOTS if named else Source.GUESS
        found += [
            rules.sight(url, purpose="sitemap", source=source, score=_sitemap_score(url))
            for url in named or [f"{origin}/sitemap.xml"]
        ]
    listing = feed_url(job.parameters.get("platform", ""), origin)
    if "feed" in sources and listing:
        found.append(_sight_list(rules, listing))
    return [one for one in found if one]


def _robots_of(url: str) -> Robots:
    """As it is kept: a task of the shop has come back, so it was read."""
    domain = Domain.objects.filter(host=url.split("/")[2]).first()
    if domain is None or not domain.respect_robots:
        return OPEN
    kept = robots_files.kept_of(domain, origin_of(url)).rules(timezone.now())
    return OPEN if kept.unreachable_until else kept


def _rules_by_website(pages: Sequence[Page]) -> dict[uuid.UUID, Rules]:
    ids = {page.claim.website_id for page in pages if page.claim.website_id}
    return {
        website.pk: found_urls.rules_of(website, _robots_of(website.base_url))
        for website in Website.objects.filter(id__in=ids)
    }


def _lock_websites(readings: Sequence[Reading]) -> dict[uuid.UUID, Website]:
    ids = sorted({r.page.claim.website_id for r in readings if r.page.claim.website_id})
    rows = Website.objects.filter(id__in=ids).order_by("id")
    return {website.pk: website for website in rows.select_for_update(no_key=True)}
