from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from accounts.models import User
from common.errors import Refused
from monitoring import history
from obsrv import first_start, health, services, supervisor
from obsrv.demo.loopback import HOST as LOOPBACK_HOST
from obsrv.demo.shop import DEMO_SHOP_PORT, DEMO_SHOP_URL
from obsrv.demo.stack import LOOPBACK
from obsrv.embedded import EmbeddedError
from obsrv.management.commands.bootstrap import add_names, told_once
from obsrv.schedules import ensure_schedules
from obsrv.supervisor import Program, Supervisor, SupervisorError


class Command(BaseCommand):
    help = "Starts everything on this machine and keeps it running until Ctrl-C."
    # They would run before there is a database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_names(parser)
        parser.add_argument(
            "--with-demo-shop",
            action="store_true",
            help=f"also serve a shop to try on, {DEMO_SHOP_URL}, and allow crawling this machine",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, supervisor.interrupt)
        self.console = Console(highlight=False, soft_wrap=True)
        self.secrets: list[str] = []
        try:
            with supervisor.only_one(settings.VAR_DIR):
                supervisor.require_free_port((settings.HOST, settings.PORT))
                if options["with_demo_shop"]:
                    stop_it = "End it, or start without --with-demo-shop"
                    supervisor.require_free_port((LOOPBACK_HOST, DEMO_SHOP_PORT), stop_it)
                self._run(options)
        except KeyboardInterrupt:
            self._say("Stopped.")
        except (EmbeddedError, SupervisorError, Refused) as error:
            raise CommandError(str(error)) from error
        finally:
            # Whatever went wrong: they can be read nowhere else.
            self._tell(self.secrets)

    def _run(self, options: dict[str, Any]) -> None:
        started_at = time.monotonic()
        self._say("Starting the database and the broker …")
        servers = services.start()
        try:
            self._prepare(options)
            self._say("Starting web, workers and beat …")
            crew = Supervisor(crew_of(options), var=settings.VAR_DIR, say=self._say)
            shop = [f"Demo shop:     {DEMO_SHOP_URL}"] if options["with_demo_shop"] else []
            crew.run(
                address=(settings.HOST, settings.PORT),
                ready=lambda: self._greet(started_at, shop),
            )
        finally:
            self._say("Stopping …")
            _forget_heartbeats()
            if servers:
                servers.stop()

    def _prepare(self, options: dict[str, Any]) -> None:
        self._say("Bringing the database up to date …")
        call_command("migrate", verbosity=0, interactive=False)
        history.make_months()
        ensure_schedules()
        first_start.ensure_groups()
        _forget_heartbeats()
        if not User.objects.exists():
            names = {name: options[name] for name in ("operator", "client", "email")}
            self.secrets = told_once(first_start.prepare(**names))
        # Nothing here needs the database again, and the server may be restarted.
        connections.close_all()

    def _greet(self, started_at: float, shop: list[str]) -> None:
        seconds = time.monotonic() - started_at
        lines = [
            f"Console:       {settings.PUBLIC_URL}/admin/",
            f"API docs:      {settings.PUBLIC_URL}/api/docs",
            f"Logs:          {settings.VAR_DIR / 'log'}",
            *shop,
        ]
        told, self.secrets = self.secrets, []
        self._tell([*lines, *([""] if told else []), *told], f"Obsrv runs ({seconds:.0f} s)")
        self._say("Ctrl-C stops it.")

    def _tell(self, lines: list[str], title: str = "Obsrv") -> None:
        if lines:
            self.console.print(Panel(Text("\n".join(lines)), title=title, expand=False))

    def _say(self, line: str) -> None:
        self.console.print(Text(line))


def crew_of(options: dict[str, Any]) -> list[Program]:
    if not options["with_demo_shop"]:
        return programs()
    shop = Program("demo-shop", [sys.executable, "manage.py", "demo_shop"], {})
    open_doors = [replace(p, environment=p.environment | LOOPBACK) for p in programs()]
    return [*open_doors, shop]


def programs() -> list[Program]:
    """In the order in which they are stopped."""
    celery = [sys.executable, "-m", "celery", "-A", "obsrv"]
    worker = [*celery, "worker", "--without-gossip", "--without-mingle", "-l", "INFO"]
    web = [sys.executable, "-m", "uvicorn", "obsrv.asgi:application", "--lifespan", "off"]
    web += ["--host", settings.HOST, "--port", str(settings.PORT), "--no-access-log"]
    web += ["--timeout-graceful-shutdown", "5"]
    here = {"PYTHONPATH": _with_checkout()}
    return [
        Program("beat", [*celery, "beat", "-l", "INFO"], here),
        Program("web", web, here | {"DATABASE_POOL": "true"}),
        Program("worker-crawl", [*worker, "-n", "crawl@%h", "-Q", "crawl", "-c", "2"], here),
        # Apart, so that slow receivers cannot hold up sweeps and heartbeats.
        Program("worker-deliver", [*worker, "-n", "deliver@%h", "-Q", "deliver", "-c", "2"], here),
        Program("worker", [*worker, "-n", "default@%h", "-Q", "default", "-c", "1"], here),
    ]


def _forget_heartbeats() -> None:
    # A server of somebody else's may serve further machines, which live on.
    if settings.EMBEDDED_VALKEY:
        health.forget_heartbeats()


def _with_checkout() -> str:
    rest = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([str(settings.BASE_DIR), *([rest] if rest else [])])
