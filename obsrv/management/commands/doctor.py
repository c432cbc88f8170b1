from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from obsrv.doctor import Finding, Verdict, examine

MARKS = {Verdict.OK: "✓", Verdict.WARNING: "!", Verdict.FAILED: "✗"}


class Command(BaseCommand):
    help = "Examines this installation and says what to do; fails when something must be done."
    # A misconfigured installation is examined too.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                self._show(finding)
        if options["json"]:
            self.stdout.write(json.dumps({"findings": [asdict(finding) for finding in findings]}))
        failed = [f.subject for f in findings if f.verdict == Verdict.FAILED]
        if failed:
            raise CommandError(f"needs attention: {', '.join(failed)}")

    def _show(self, finding: Finding) -> None:
        self.stdout.write(f"{MARKS[finding.verdict]} {finding.subject:<11} {finding.text}")
        if finding.remedy:
            self.stdout.write(f"  {'':<11} → {finding.remedy}")
