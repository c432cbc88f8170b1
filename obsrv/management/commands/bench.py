from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from obsrv import services

BENCHES = (
    "api",
    "claims",
    "console",
    "extraction",
    "fetch",
    "history",
    "memory",
    "pipeline",
    "politeness",
    "webhooks",
)
# Set in the process that measures: it has servers of its own, apart from anyone's data.
INSIDE = "OBSRV_BENCH"


class Command(BaseCommand):
    help = "Measures: every figure beside a peer or a limit of the same run."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=BENCHES)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--quick", action="store_true", help="less data, fewer repetitions")
        parser.add_argument("--cases", default="", help="extraction: a folder of judged pages")
        parser.add_argument(
            "--peers",
            default="",
            help="pipeline: scrapy, changedetection or both, with a comma; installed under var/bench",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if INSIDE not in os.environ:
            self._run_apart()
        try:
            bench = importlib.import_module(f"benchmarks.{options['name']}")
        except ModuleNotFoundError as error:
            raise CommandError(f"benchmarks need a checkout: {error}") from error
        services.start()
        call_command("migrate", verbosity=0)
        extra = {"cases": options["cases"]} if options["cases"] else {}
        if options["peers"]:
            extra["peers"] = _known(options["peers"].split(","), getattr(bench, "PEERS", ()))
        figures = bench.measure(quick=options["quick"], **extra)
        report = {"bench": options["name"], "figures": figures, "load": os.getloadavg()[0]}
        if options["json"]:
            self.stdout.write(json.dumps(report))
        else:
            Console().print(as_table(report))

    def _run_apart(self) -> None:
        environment = os.environ | {
            INSIDE: "1",
            "OBSRV_READ_ENV_FILE": "false",
            "OBSRV_VAR_DIR": str(settings.BASE_DIR / "var" / "bench"),
            "OBSRV_EMBEDDED_THROW_AWAY": "true",
            "EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8",
            "CRAWL_DEFAULT_DELAY_SECONDS": "0",
            "CRAWL_DEFAULT_CONCURRENCY": "32",
            "LOG_LEVEL": "WARNING",
        }
        for name in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"):
            environment.pop(name, None)
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606


def _known(asked: list[str], known: Collection[str]) -> list[str]:
    if strange := set(asked) - set(known):
        there_are = f"there are: {', '.join(known)}" if known else "this benchmark has none"
        raise CommandError(f"No such peer: {', '.join(sorted(strange))}; {there_are}.")
    return asked


def as_table(report: dict[str, Any]) -> Table:
    table = Table(title=f"{report['bench']} (load {report['load']:.1f})")
    for column in ("figure", "value", "unit", "peer or limit", "ratio", "spread"):
        table.add_column(column)
    for figure in report["figures"]:
        names = ("name", "value", "unit", "peer", "ratio", "spread")
        table.add_row(*(str(figure[name]) for name in names))
    return table
