from __future__ import annotations

import json
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.markup import escape

from obsrv.demo.receiver import Received, Receiver

DEFAULT_PORT = 8899
LOOK_SECONDS = 1.0


class Command(BaseCommand):
    help = (
        "Listens for webhooks on this machine, verifies and prints them, and answers 401 to what"
        " does not verify; Ctrl-C ends it."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--secret", action="append", required=True, help="may be repeated")
        parser.add_argument("--port", type=int, default=DEFAULT_PORT)
        parser.add_argument("--count", type=int, default=0, help="end after so many")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = Console(file=cast(Any, self.stdout), highlight=False)
        self.as_json = options["json"]
        self.seen: dict[str, int] = {}
        self.unverified = 0
        try:
            with Receiver(options["secret"], port=options["port"], refuses=True) as receiver:
                if not self.as_json:
                    self.console.print(f"Listening on {receiver.url}, any path; Ctrl-C ends.")
                self._follow(receiver, options["count"])
        except OSError as error:
            raise CommandError(f"cannot listen on port {options['port']}: {error}") from error
        except KeyboardInterrupt:
            pass
        if self.unverified:
            raise CommandError(f"{self.unverified} deliveries did not verify.")

    def _follow(self, receiver: Receiver, count: int) -> None:
        shown = 0
        while not count or shown < count:
            try:
                arrived = receiver.wait_for(count=shown + 1, timeout=LOOK_SECONDS)
            except TimeoutError:
                continue
            for received in arrived[shown:]:
                self._show(received)
            shown = len(arrived)

    def _show(self, received: Received) -> None:
        event_id = str(received.event.get("id", ""))
        self.seen[event_id] = times = self.seen.get(event_id, 0) + 1
        self.unverified += not received.verified
        if self.as_json:
            about = {
                "verified": received.verified,
                "times_seen": times,
                "received_at": received.received_at.isoformat(),
                "path": received.path,
                "event": received.event,
            }
            self.stdout.write(json.dumps(about))
            self.stdout.flush()
            return
        verdict = "[green]verified[/]" if received.verified else "[red]NOT VERIFIED[/]"
        again = f" [yellow](seen {times} times)[/]" if times > 1 else ""
        self.console.print(f"{verdict} [bold]{escape(received.type)}[/] {escape(event_id)}{again}")
        self.console.print_json(data=received.event)
