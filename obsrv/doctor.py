"""Questions to an installation, each with what to do when the answer is bad."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import redis
from django.conf import settings
from django.db import Error, connection
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from accounts.models import Client
from common.crypto import Undecryptable
from common.partitions import rows_in_default
from monitoring import history
from obsrv import health, queues, services
from obsrv.checks import check_secrets
from obsrv.embedded import EmbeddedError
from obsrv.schedules import NEEDED

CLOCK_TOLERANCE = dt.timedelta(seconds=5)


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    subject: str
    verdict: Verdict
    text: str
    remedy: str = ""


class Bad(Exception):
    """An answer to worry about."""

    def __init__(self, text: str, remedy: str, verdict: Verdict = Verdict.FAILED) -> None:
        super().__init__(text)
        self.remedy = remedy
        self.verdict = verdict


def examine() -> Iterator[Finding]:
    """Ask everything; an unreachable server fails its own questions only."""
    for subject, question in QUESTIONS.items():
        try:
            yield Finding(subject, Verdict.OK, question())
        except Bad as bad:
            yield Finding(subject, bad.verdict, str(bad), bad.remedy)
        except Error as error:
            text = f"the database does not answer: {str(error).splitlines()[0]}"
            yield Finding(subject, Verdict.FAILED, text, "Check DATABASE_URL and the server.")
        except redis.RedisError as error:
            text = f"redis does not answer: {error}"
            yield Finding(subject, Verdict.FAILED, text, "Check REDIS_URL and the server.")


def ask_services() -> str:
    try:
        started = services.start()
    except EmbeddedError as error:
        raise Bad(
            str(error), "Set DATABASE_URL and REDIS_URL to use servers of your own."
        ) from error
    if started is None:
        return "external, by DATABASE_URL and REDIS_URL"
    return f"embedded: {', '.join(server.name for server in started.needed)}"


def ask_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        version = str(cursor.fetchone()[0])
    if int(version.split(".")[0]) < 15:
        raise Bad(f"PostgreSQL {version}", "Upgrade to PostgreSQL 15 or newer.")
    return f"PostgreSQL {version}"


def ask_migrations() -> str:
    return _as_health("migrations", "Run: manage.py migrate")


def ask_partitions() -> str:
    told = _as_health("partitions", "Run: manage.py ensure_schedules, and see that beat runs.")
    stray = rows_in_default(history.TABLE)
    if stray:
        raise Bad(
            f"{stray} history rows are outside every month",
            "Run: manage.py ensure_schedules, and see that beat runs; it makes their months.",
            Verdict.WARNING,
        )
    return told


def ask_vector() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        found = cursor.fetchone()
    if found is None:
        raise Bad(
            "the extension is not installed on the server",
            "Search will be by keyword only: docs/operations.md, Without pgvector.",
            Verdict.WARNING,
        )
    return f"pgvector {found[0]} is available"


def ask_clock() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        apart = abs(cursor.fetchone()[0] - timezone.now())
    if apart > CLOCK_TOLERANCE:
        raise Bad(
            f"this machine and the database are {apart.total_seconds():.0f} s apart",
            "Run NTP on both: signatures and leases need the same time.",
        )
    return "agrees with the database"


def ask_broker() -> str:
    if settings.BROKER_IS_AMQP:
        return _ask_amqp()
    with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2) as server:
        try:
            policy = server.config_get("maxmemory-policy")["maxmemory-policy"]
        except redis.ResponseError:
            server.ping()
            return "answers; its eviction policy is hidden, it must be noeviction"
    if policy != "noeviction":
        raise Bad(f"evicts keys ({policy})", "Set maxmemory-policy noeviction.")
    return "noeviction"


def _ask_amqp() -> str:
    try:
        queues.unattended()
    except queues.BrokerAway as error:
        raise Bad(f"does not answer: {error}", "Check CELERY_BROKER_URL and the server.") from error
    return "RabbitMQ answers"


def ask_queues() -> str:
    queues.forget()
    return _alive("queues")


def ask_keys() -> str:
    errors = check_secrets()
    if errors:
        raise Bad(errors[0].msg, errors[0].hint or "")
    try:
        clients = Client.objects.only("webhook_secret_current")
        count = sum(bool(client.webhook_secret_current) for client in clients)
    except Undecryptable as error:
        raise Bad(str(error), "Add the old key to the end of FIELD_ENCRYPTION_KEYS.") from error
    return f"{len(settings.FIELD_ENCRYPTION_KEYS)} in use, {count} secrets readable"


def ask_egress() -> str:
    networks = ", ".join(settings.EGRESS_ALLOWED_NETWORKS)
    if networks:
        raise Bad(
            f"private networks are open to crawls and webhooks: {networks}",
            "Empty EGRESS_ALLOWED_NETWORKS unless every client may reach them.",
            Verdict.WARNING,
        )
    return "public addresses only"


def ask_schedules() -> str:
    wanted = [needed.name for needed in NEEDED]
    enabled = PeriodicTask.objects.filter(name__in=wanted, enabled=True)
    missing = set(wanted) - set(enabled.values_list("name", flat=True))
    if missing:
        raise Bad(
            f"missing or switched off: {', '.join(sorted(missing))}",
            "Run: manage.py ensure_schedules, or switch them on in the console.",
            Verdict.WARNING,
        )
    return f"{len(wanted)} in place"


def ask_beat() -> str:
    return _alive("beat")


def ask_worker() -> str:
    return _alive("worker")


QUESTIONS: dict[str, Callable[[], str]] = {
    "services": ask_services,
    "database": ask_database,
    "migrations": ask_migrations,
    "partitions": ask_partitions,
    "vector": ask_vector,
    "clock": ask_clock,
    "broker": ask_broker,
    "keys": ask_keys,
    "egress": ask_egress,
    "schedules": ask_schedules,
    "beat": ask_beat,
    "worker": ask_worker,
    "queues": ask_queues,
}


def _alive(name: str) -> str:
    # A laptop's installation may rest; a server's may not.
    worst = Verdict.WARNING if settings.EMBEDDED_NEEDED else Verdict.FAILED
    return _as_health(name, "Start it: bin/up, or the service of your deployment.", worst)


def _as_health(check: str, remedy: str, verdict: Verdict = Verdict.FAILED) -> str:
    try:
        health.CHECKS[check]()
    except health.NotReady as error:
        raise Bad(str(error), remedy, verdict) from error
    return "fine"
