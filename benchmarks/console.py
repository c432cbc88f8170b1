"""The console at size: every list and the page of a product, with 100,000 products, 5 million
checks and a million tasks. Queries and time of each, as an operator with all rights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
from django.contrib import admin
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Client, User
from benchmarks import history
from benchmarks.figures import Figure, figure
from monitoring.models import Product
from obsrv.first_start import ensure_groups
from obsrv.schedules import ensure_schedules

ROUNDS = 5
# The kernel counts in hundredths of a second.
REPEATED = 3
MOST_QUERIES = 15
LIST_MS, PRODUCT_MS = 300, 400
# Rows of each table; the products and their checks are those of the bench of the history.
FULL = {"products": 100_000, "watched": 55_500, "tasks": 1_000_000, "others": 200_000}
QUICK = {"products": 10_000, "watched": 2_000, "tasks": 50_000, "others": 10_000}
# In this order: each uses what those before it made.
STATEMENTS = (
    "TRUNCATE crawling_crawljob, crawling_domain, crawling_proxy, crawling_storedpage,"
    " notifications_event, notifications_webhookendpoint, accounts_auditentry CASCADE",
    """UPDATE monitoring_product SET approval = 'pending', discovery_score = random()
    WHERE id IN (SELECT id FROM monitoring_product ORDER BY created_at LIMIT %(products)s / 10)""",
    """INSERT INTO accounts_client (id, created_at, updated_at, name, email, subscription_tier,
        is_active, max_websites, max_products_per_website, timezone, webhook_secret_current,
        webhook_secret_previous)
    SELECT gen_random_uuid(), now(), now(), 'Retailer ' || n, 'r' || n || '@bench.example',
        'basic', true, 20, 1000, 'UTC', '', '' FROM generate_series(1, 500) n
    ON CONFLICT DO NOTHING""",
    """INSERT INTO accounts_apikey (id, created_at, updated_at, client_id, name, digest, prefix,
        scopes, rate_limit_rpm)
    SELECT gen_random_uuid(), now(), now(), c.id, 'key', encode(sha256(c.id::text::bytea), 'hex'),
        left(c.id::text, 8), '{read}', 60 FROM accounts_client c ON CONFLICT DO NOTHING""",
    """INSERT INTO crawling_domain (id, created_at, updated_at, host, base_url, parser_name,
        parser_version, learned, crawl_delay_seconds, max_concurrent_requests, respect_robots,
        user_agent, default_crawl_frequency_seconds, is_active, is_blocked, blocked_reason, render,
        maintenance_timezone, proxy_rotation, robots_url, robots_body, robots_failures,
        robots_other, breaker_threshold, breaker_timeout_s, breaker_state, breaker_failures,
        breaker_openings, breaker_window, throttle_seconds, backoff_seconds, leased_by,
        success_count, failure_count)
    SELECT gen_random_uuid(), now(), now(), 'd' || n || '.example', 'https://d' || n || '.example',
        'generic', '', '[]', 1, 2, true, '', 86400, true, false, '', 'auto', 'UTC', 'lru', '', '',
        0, '{}', 5, 300, 'closed', 0, 0, '{}', 0, 0, '', 1000, 10 FROM generate_series(1, 500) n""",
    """INSERT INTO crawling_proxy (id, created_at, updated_at, protocol, host, port, username,
        password, pool, country_code, city, provider, hour_count, is_active, disabled_reason,
        success_count, failure_count, consecutive_failures)
    SELECT gen_random_uuid(), now(), now(), 'http', 'p' || n || '.example', 3128, '', '',
        'pool ' || n %% 5, 'DE', '', 'acme', 0, true, '', 100, 3, 0
    FROM generate_series(1, 300) n""",
    """INSERT INTO crawling_storedpage (id, content_hash, storage_key, size, compressed_size,
        content_type, charset, first_seen_at, last_seen_at)
    SELECT gen_random_uuid(), encode(sha256(n::text::bytea), 'hex'), 'k' || n, 50000, 9000,
        'text/html', 'utf-8', now(), now() - n * interval '1 second'
    FROM generate_series(1, %(others)s) n""",
    """INSERT INTO crawling_crawljob (id, created_at, updated_at, client_id, website_id, kind,
        status, total, processed, changes, errors, retries, priority, parameters, triggered_by,
        request_id, error_summary, started_at, completed_at)
    SELECT gen_random_uuid(), now() - n * interval '3 minutes', now(), w.client_id, w.id,
        'monitor', 'success', 100, 100, 3, 1, 0, 5, '{}', 'schedule', '', '', now(), now()
    FROM generate_series(1, 10000) n
    JOIN (SELECT id, client_id, row_number() OVER () AS r FROM monitoring_website) w
        ON w.r = 1 + n %% 20""",
    """INSERT INTO crawling_crawltask (id, created_at, updated_at, job_id, domain_id, client_id,
        website_id, purpose, url, normalized_url, url_hash, status, priority, scheduled_at,
        retry_count, max_retries, depth, score, fence, paused_from, claims, error_category,
        error_message, http_status, response_time_ms, bytes, final_url, from_cache, is_recurring,
        completed_at, created_by)
    SELECT gen_random_uuid(), now() - n * interval '2 seconds', now(), j.id, d.id, j.client_id,
        j.website_id, 'product', 'https://shop.example/p/' || n, 'https://shop.example/p/' || n,
        encode(sha256(n::text::bytea), 'hex'),
        CASE WHEN n %% 50 = 0 THEN 'failed' WHEN n <= 20000 THEN 'pending' ELSE 'completed' END,
        5, now() + interval '1 day', 0, 3, 0, 0, 1, '', 1,
        CASE WHEN n %% 50 = 0 THEN 'timeout' ELSE '' END, '', 200, 180, 40000, '', false, false,
        now(), ''
    FROM generate_series(1, %(tasks)s) n
    JOIN (SELECT id, client_id, website_id, row_number() OVER () AS r FROM crawling_crawljob) j
        ON j.r = 1 + n %% 10000
    JOIN (SELECT id, row_number() OVER () AS r FROM crawling_domain) d ON d.r = 1 + n %% 500""",
    """INSERT INTO crawling_crawlerror (id, task_id, domain_id, category, message, trace,
        fingerprint, occurred_at)
    SELECT gen_random_uuid(), t.id, t.domain_id,
        (ARRAY['timeout','network','http','parse'])[1 + n %% 4], 'no answer within 30 s', '',
        encode(sha256((n %% 300)::text::bytea), 'hex'), now() - n * interval '10 seconds'
    FROM (SELECT id, domain_id, row_number() OVER () AS n FROM crawling_crawltask
        WHERE status = 'failed') t""",
    """INSERT INTO crawling_ledgerentry (id, domain_id, proxy_id, url, started_at,
        wanted_gap_seconds, rule, http_status, bytes, response_ms, not_modified, error_category)
    SELECT gen_random_uuid(), d.id, p.id, 'https://shop.example/p/' || n,
        now() - n * interval '2 seconds', 1, 'delay', 200, 40000, 150 + n %% 90, false, ''
    FROM generate_series(1, %(others)s) n
    JOIN (SELECT id, row_number() OVER () AS r FROM crawling_domain) d ON d.r = 1 + n %% 500
    JOIN (SELECT id, row_number() OVER () AS r FROM crawling_proxy) p ON p.r = 1 + n %% 300""",
    """INSERT INTO notifications_webhookendpoint (id, created_at, updated_at, client_id, url,
        events, description, is_active, disabled_reason, timeout_seconds, failures_in_row, headers,
        secret_current, secret_previous)
    SELECT gen_random_uuid(), now(), now(), id, 'https://receiver.example/' || name, '{*}', '',
        true, '', 15, 0, '', '', '' FROM accounts_client LIMIT 200""",
    """INSERT INTO notifications_event (id, client_id, type, sequence, body, website_id, object_id,
        request_id, created_at)
    SELECT gen_random_uuid(), e.client_id, 'product.price_changed', 1000000 + n, '{}', NULL,
        gen_random_uuid(), '', now() - n * interval '1 second'
    FROM generate_series(1, %(others)s) n
    JOIN (SELECT client_id, row_number() OVER () AS r FROM notifications_webhookendpoint) e
        ON e.r = 1 + n %% 200""",
    """INSERT INTO notifications_delivery (id, created_at, updated_at, event_id, endpoint_id,
        status, attempt_number, next_retry_at, fence, last_http_status, last_error)
    SELECT gen_random_uuid(), v.created_at, now(), v.id, e.id,
        CASE WHEN v.sequence %% 40 = 0 THEN 'exhausted' ELSE 'success' END, 1, now(), 1, 200, ''
    FROM notifications_event v JOIN notifications_webhookendpoint e ON e.client_id = v.client_id""",
    """INSERT INTO notifications_deliveryattempt (id, delivery_id, number, attempted_at, url,
        signature_header, standard_signature, own_headers, status_code, duration_ms,
        response_headers, response_body, error)
    SELECT gen_random_uuid(), id, 1, created_at, '', '', '', '{}', 200, 30, '{}', '', ''
    FROM notifications_delivery""",
    """INSERT INTO accounts_auditentry (id, actor_kind, actor_name, verb, object_type, object_id,
        object_name, before, after, request_id, created_at)
    SELECT gen_random_uuid(), 'operator', 'ana', 'update', 'accounts.client', n::text, 'x', '{}',
        '{}', '', now() - n * interval '1 second' FROM generate_series(1, %(others)s) n""",
    """INSERT INTO monitoring_foundurl (id, website_id, url, url_hash, job_id, purpose, source,
        depth, score, state, reason, first_seen_at, last_seen_at)
    SELECT gen_random_uuid(), w.id, 'https://shop.example/' || n,
        encode(sha256(n::text::bytea), 'hex'), w.id, 'discover', 'sitemap', 1, random(), 'product',
        '', now(), now()
    FROM generate_series(1, %(others)s) n
    JOIN (SELECT id, row_number() OVER () AS r FROM monitoring_website) w ON w.r = 1 + n %% 20""",
    "VACUUM ANALYZE",
)


def measure(*, quick: bool) -> list[Figure]:
    prepare(QUICK if quick else FULL)
    browser = Browser()
    browser.force_login(_operator())
    return [
        made for name, path, limit in pages() for made in page_figures(browser, name, path, limit)
    ]


def prepare(sizes: dict[str, int]) -> None:
    ensure_groups()
    ensure_schedules()
    Client.objects.filter(email__endswith="@bench.example").delete()
    history.prepare(sizes["products"], sizes["watched"])
    with connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement, sizes if "%(" in statement or "%%" in statement else None)


def _operator() -> User:
    user, _ = User.objects.get_or_create(
        username="bench", defaults={"is_staff": True, "is_superuser": True}
    )
    return user


def pages() -> Iterator[tuple[str, str, int]]:
    yield "overview", "/admin/", LIST_MS
    for model in sorted(admin.site._registry, key=lambda model: model._meta.label):
        place = f"{model._meta.app_label}_{model._meta.model_name}_changelist"
        yield str(model._meta.verbose_name_plural), reverse(f"admin:{place}"), LIST_MS
    yield "error groups", reverse("admin:crawling_crawlerror_groups"), LIST_MS
    yield "failed tasks", f"{_list('crawling_crawltask')}?status__exact=failed", LIST_MS
    yield "tasks of a host", f"{_list('crawling_crawltask')}?host=d7.example", LIST_MS
    yield (
        "retrying deliveries",
        f"{_list('notifications_delivery')}?status__exact=retrying",
        LIST_MS,
    )
    yield "system", reverse("system"), LIST_MS
    product = Product.objects.filter(approval="approved").order_by("id").first()
    assert product is not None
    page = reverse("admin:monitoring_product_change", args=[product.pk])
    yield "product page", page, PRODUCT_MS


def _list(name: str) -> str:
    return reverse(f"admin:{name}_changelist")


def page_figures(browser: Browser, name: str, path: str, limit: int) -> list[Figure]:
    _open(browser, path)
    with CaptureQueriesContext(connection) as asked:
        _open(browser, path)
        queries = len(asked)
    walls, spent = [], []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), _cpu_seconds()
        for _ in range(REPEATED):
            _open(browser, path)
        walls.append((time.perf_counter() - began) * 1000 / REPEATED)
        spent.append((_cpu_seconds() - cpu) * 1000 / REPEATED)
    most = 0 if limit == PRODUCT_MS else MOST_QUERIES
    peer = f"limit {most}" if most else "none"
    return [
        figure(f"{name}: queries", [queries], "", peer=peer, against=most),
        figure(f"{name}: CPU", spent, "ms", peer=f"limit {limit}", against=limit),
        figure(f"{name}: wall", walls, "ms", peer=f"limit {limit}", against=limit),
    ]


def _cpu_seconds() -> float:
    """Of this process and of the one of PostgreSQL that works for it: what the page costs,
    however busy the machine is."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        server = psutil.Process(cursor.fetchone()[0]).cpu_times()
    return time.process_time() + server.user + server.system


def _open(browser: Browser, path: str) -> Any:
    answer = browser.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer
