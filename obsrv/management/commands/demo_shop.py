from __future__ import annotations

import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from obsrv.demo.shop import DEMO_SHOP_PORT, DemoShop


class Command(BaseCommand):
    help = "Serves a small shop on this machine, to try Obsrv on."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=DEMO_SHOP_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with DemoShop(options["port"]) as shop:
                self.stdout.write(f"{shop.url}; a new price: POST /products/desk-lamp?price=29.90")
                threading.Event().wait()
        except OSError as error:
            raise CommandError(f"port {options['port']} cannot be used: {error}") from error
        except KeyboardInterrupt:
            self.stdout.write("Closed.")
