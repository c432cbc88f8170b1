from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from crawling import ledger
from crawling.models import Domain, LedgerEntry


class Command(BaseCommand):
    help = "Shows the requests to a host; --check verifies that every gap was kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("host")
        parser.add_argument("--check", action="store_true", help="fail where a gap was broken")
        parser.add_argument("--limit", type=int, default=50, help="newest requests shown")

    def handle(self, *args: Any, **options: Any) -> None:
        domain = Domain.objects.filter(host=options["host"].lower()).first()
        if domain is None:
            raise CommandError(f"No domain {options['host']}: name it as the console does.")
        if options["check"]:
            self._check(domain)
        else:
            self._show(domain, options["limit"])

    def _check(self, domain: Domain) -> None:
        total = LedgerEntry.objects.filter(domain=domain).count()
        broken = ledger.broken_gaps(domain)
        for one in broken:
            self.stderr.write(
                f"{one.started_at:%Y-%m-%d %H:%M:%S.%f} {one.url}: {one.rule} wanted "
                f"{one.wanted_gap_seconds:.3f} s, kept {one.gap_seconds} s"
            )
        if broken:
            raise CommandError(f"{len(broken)} of {total} requests to {domain} came too early.")
        self.stdout.write(f"{total} requests to {domain}, every gap kept.")

    def _show(self, domain: Domain, limit: int) -> None:
        for entry in LedgerEntry.objects.filter(domain=domain)[:limit]:
            gap = "-" if entry.gap_seconds is None else f"{entry.gap_seconds:.3f}"
            self.stdout.write(
                f"{entry.started_at:%Y-%m-%d %H:%M:%S.%f} {entry.http_status or '-'} "
                f"{gap}/{entry.wanted_gap_seconds:.3f} s {entry.rule} {entry.url}"
            )
