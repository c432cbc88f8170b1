"""Log lines: structlog over the standard library, with the request id, without secrets."""

from __future__ import annotations

import logging.config
import re
from typing import Any

import structlog

SECRETS = re.compile(r"(obsrv_(?:live|test)_|whsec_)[A-Za-z0-9_\-+/=]{6,}")


def redact(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Keys and signing secrets never reach a log, whoever put them into the message."""
    for key, value in event.items():
        if isinstance(value, str) and "_" in value:
            event[key] = SECRETS.sub(r"\1…", value)
    return event


def logging_config(style: str, level: str) -> None:
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    ending = [structlog.processors.format_exc_info, redact] if style == "json" else [redact]
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        *ending,
                        renderer,
                    ],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django.server": {"level": "WARNING"},
                "uvicorn.access": {"level": "WARNING"},
                "celery.worker.strategy": {"level": "WARNING"},
                "celery.app.trace": {"level": "WARNING"},
                "celery.beat": {"level": "WARNING"},
                "django_celery_beat.schedulers": {"level": "WARNING"},
            },
        }
    )
