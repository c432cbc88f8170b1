"""Log lines: structlog over the standard library, with the request id, without secrets."""

from __future__ import annotations

import logging.config
import re
from collections.abc import Mapping
from typing import Any

import structlog

SECRETS = re.compile(r"(obsrv_(?:live|test)_|whsec_)[A-Za-z0-9_\-+/=]{6,}")


def redact(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Keys and signing secrets never reach a log, whoever put them into the message."""
    return {key: _cleaned(value) for key, value in event.items()}


def _cleaned(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_cleaned(inner) for inner in value]
    # Whatever else there is, a renderer would print its text.
    return SECRETS.sub(r"\1…", value if isinstance(value, str) else str(value))


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
# Each tells of every message or request at INFO.
CHATTY = (
    "django.server",
    "uvicorn.access",
    "celery.worker.strategy",
    "celery.app.trace",
    "celery.beat",
    "django_celery_beat.schedulers",
)


def logging_config(style: str, level: str) -> None:
    # Without this structlog prints by itself, past the formatter and its redaction.
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": _line(style)},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {name: {"level": "WARNING"} for name in CHATTY},
        }
    )


def _line(style: str) -> dict[str, Any]:
    renderer: Any = structlog.processors.JSONRenderer()
    if style != "json":
        # Plain: the other formatters print local variables, and secrets with them.
        renderer = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
    }
