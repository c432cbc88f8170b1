"""Requests per key and minute: a sliding window in Redis, exact under concurrency.

One Lua script reads the clock, forgets old requests and counts the new one, so two web
processes cannot both take the last place. Without Redis nobody is refused.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from common.drf.principals import key_of
from common.ids import uuid7

log = logging.getLogger(__name__)

WINDOW_SECONDS = 60
TIMEOUT_SECONDS = 0.25

# Answers {allowed, remaining, microseconds until the oldest request leaves the window}.
SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, string.format('%.0f', now - window))
local count = redis.call('ZCARD', KEYS[1])
local allowed = 0
if count < limit then
  allowed = 1
  count = count + 1
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
  redis.call('PEXPIRE', KEYS[1], window / 1000)
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {allowed, limit - count, oldest[2] + window - now}
"""


@dataclass(frozen=True)
class Rate:
    limit: int
    allowed: bool
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"default";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"default";r={self.remaining};t={self.reset_seconds}',
        }


@lru_cache(maxsize=4)
def _script(url: str) -> Any:
    connection = redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        # A second try would double what a request waits for a Redis that is away.
        retry=Retry(NoBackoff(), 0),
    )
    return connection.register_script(SCRIPT)


def take(name: str, limit: int) -> Rate:
    """Count one request of ``name``."""
    try:
        allowed, remaining, wait = _script(settings.REDIS_URL)(
            keys=[f"obsrv:rate:{name}"],
            args=[WINDOW_SECONDS * 1_000_000, limit, uuid7().hex],
        )
    except redis.RedisError as error:
        log.warning("Rate limit not counted, Redis is away: %s", error)
        return Rate(limit, allowed=True, remaining=limit, reset_seconds=WINDOW_SECONDS)
    # Lowered limits leave more in the window than it now holds.
    left = max(0, int(remaining))
    return Rate(limit, bool(allowed), left, max(1, -(-int(wait) // 1_000_000)))


class KeyRate(BaseThrottle):
    """The DRF door; leaves the rate on the request for the headers."""

    rate: Rate | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        key = key_of(request)
        if key is None:
            return True
        self.rate = take(str(key.pk), key.rate_limit_rpm)
        request._request.rate = self.rate  # type: ignore[attr-defined]
        return self.rate.allowed

    def wait(self) -> float | None:
        return self.rate.reset_seconds if self.rate else None
