"""Parts that the console's screens share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.decorators import display

from common.errors import Refused

Shown = TypeVar("Shown", bound=Callable[..., Any])

# Colours of unfold's labels.
GOOD, BAD, WARN, INFO = "success", "danger", "warning", "info"


class ReadOnly:
    """Rows that the console shows and nobody edits by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def words(value: str) -> str:
    """A choice as Django labels it."""
    return value.replace("_", " ").title()


def badge(
    description: str, colours: dict[str, str], ordering: str | None = None
) -> Callable[[Shown], Shown]:
    """A column of coloured labels; the method answers the label of a choice."""
    by_label = {words(value): colour for value, colour in colours.items()}
    decorator = display(description=description, label=by_label, ordering=ordering)
    return cast("Callable[[Shown], Shown]", decorator)


def outside_link(url: str) -> str:
    """A URL that came from outside: a link only where a browser would fetch a page."""
    if not url.lower().startswith(("http://", "https://")):
        return url
    shown = url if len(url) <= 80 else f"{url[:79]}…"
    link = '<a href="{}" rel="noopener noreferrer" target="_blank" class="text-link">{}</a>'
    return format_html(link, url, shown)


def block(text: str) -> str:
    """Text with its own line breaks."""
    return format_html('<pre class="whitespace-pre-wrap">{}</pre>', text)


def inside_link(url: str, text: str) -> str:
    return format_html('<a href="{}" class="text-link">{}</a>', url, text)


def do_each(
    request: HttpRequest, rows: Iterable[Any], job: Callable[[Any], Any], done: str
) -> None:
    """Do a job for each chosen row; refusals become messages and stop nobody else."""
    count = 0
    for row in rows:
        try:
            job(row)
        except Refused as refused:
            messages.error(request, f"{row}: {refused.detail}")
        else:
            count += 1
    if count:
        messages.success(request, f"{count} {done}.")


def add_refusal(form: Any, refused: Refused) -> None:
    """Show why a job said no, at the field it names."""
    name, _, index = (refused.attr or "").partition(".")
    detail = f"Line {int(index) + 1}: {refused.detail}" if index.isdigit() else refused.detail
    form.add_error(name if name in form.fields else None, detail)
