from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.errors import Refused
from extraction.sites import PARSERS
from monitoring.previews import Preview, as_json, preview_html, preview_url

# What a saved page is taken for, where nobody says where it came from.
NOWHERE = "https://saved.example/"
MOST_LOST = 20


class Command(BaseCommand):
    help = "Reads one page as a crawl would and says why; nothing is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("page", help="a URL, or a file with a saved page")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--parser", default="", help="a parser instead of the domain's own")
        parser.add_argument("--url", default=NOWHERE, help="where a saved page came from")
        parser.add_argument("--currency", default="", help="for pages that leave it open")
        parser.add_argument("--locale", default="", help="such as de-CH")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parser"] and options["parser"] not in PARSERS:
            raise CommandError(f"--parser must be one of: {', '.join(sorted(PARSERS))}")
        found = self._read(options)
        if options["json"]:
            self.stdout.write(json.dumps(as_json(found), indent=2, ensure_ascii=False))
        else:
            show(found, Console(file=cast("IO[str]", self.stdout), highlight=False))

    def _read(self, options: dict[str, Any]) -> Preview:
        hints = {name: options[name] for name in ("currency", "locale")}
        hints["parser_name"] = options["parser"]
        page = options["page"]
        try:
            if "://" in page:
                return preview_url(page, **hints)
            return preview_html(Path(page).read_bytes(), options["url"], **hints)
        except Refused as refused:
            raise CommandError(refused.detail) from refused
        except OSError as error:
            raise CommandError(f"cannot read {page}: {error.strerror}") from error


def show(found: Preview, console: Console) -> None:
    """Crawled text goes in as ``Text``: nothing of it is markup."""
    for name, value in _summary(found):
        console.print(Text(f"{name:<10} "), Text(value), sep="")
    if found.fields:
        table = _table("Field", "Value", "Source", "Sure", "Read from")
        for one in found.fields:
            sure = "" if one.confidence is None else f"{one.confidence:.2f}"
            table.add_row(*map(_cell, (one.name, one.value, one.source, sure, one.raw)))
        console.print(table)
    if found.lost:
        table = _table("Not taken", "Value", "Source", "Score", "Why")
        for lost in found.lost[:MOST_LOST]:
            score = "" if lost.score is None else f"{lost.score:.2f}"
            table.add_row(*map(_cell, (lost.name, lost.value, lost.source, score, lost.reason)))
        console.print(table)


def _summary(found: Preview) -> list[tuple[str, str]]:
    lines = [("page", found.url), ("outcome", found.outcome.replace("_", " ")), ("why", found.why)]
    if found.fetched is not None:
        came = (
            f"HTTP {found.fetched.status}, {found.fetched.elapsed_ms} ms"
            if found.fetched.status
            else "—"
        )
        lines.append(("fetch", f"{came}, robots.txt: {found.fetched.robots}"))
    if found.outcome == "product":
        lines.append(("method", f"{found.method}, {found.confidence:.2f} sure"))
    elif found.page_kind:
        lines.append(("kind", f"{found.page_kind}, needs a browser: {found.js_needed}"))
    if found.parser:
        lines.append(("parser", f"{found.parser} {found.parser_version}"))
    return lines


def _table(*columns: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _cell(value: Any) -> Text:
    shown = " › ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = "".join(c if c.isprintable() else " " for c in shown)
    return Text(text if len(text) <= 120 else f"{text[:119]}…")
