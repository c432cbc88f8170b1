"""Parts that the console's screens share."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.timezone import localtime
from unfold.decorators import display

from common.crypto import EncryptedTextField
from common.errors import Refused

Shown = TypeVar("Shown", bound=Callable[..., Any])

# Colours of unfold's labels.
TAIL_CHARS = 32
HOST_CHARS = 30
GOOD, BAD, WARN, INFO = "success", "danger", "warning", "info"


class ReadOnly:
    """Rows that the console shows and nobody edits by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Buttons:
    """Buttons on the page of a row that act without saving its form: ``actions_submit_line``,
    POST only, each with its own permission."""

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        row = None
        if object_id and request.method == "POST":
            row = self.get_object(request, object_id)  # type: ignore[attr-defined]
        if row is not None:
            for button in self.get_actions_submit_line(request, object_id):  # type: ignore[attr-defined]
                if button.action_name in request.POST:
                    button.method(request, row)
                    return HttpResponseRedirect(request.get_full_path())
        return super().changeform_view(request, object_id, *args, **kwargs)  # type: ignore[misc]


def without_secrets(rows: QuerySet[Any], *relations: str) -> QuerySet[Any]:
    """Lists show no secrets: reading them would decrypt each of each row."""
    names = []
    for relation in ("", *relations):
        model = rows.model
        for part in filter(None, relation.split("__")):
            model = model._meta.get_field(part).related_model
        prefix = f"{relation}__" if relation else ""
        fields = [one for one in model._meta.fields if isinstance(one, EncryptedTextField)]
        names += [prefix + field.name for field in fields]
    return rows.defer(*names) if names else rows


class Detailed:
    """A list whose rows are told more, for all of a page at once: ``add_details``."""

    def add_details(self, rows: list[Any]) -> None:
        raise NotImplementedError

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        shown = super().get_changelist_instance(request)  # type: ignore[misc]
        shown.result_list = list(shown.result_list)
        self.add_details(shown.result_list)
        return shown


class Pictured:
    """A list with plots above it: ``plots``, asked only where the list is shown."""

    list_before_template = "admin/plots.html"

    def plots(self, request: HttpRequest) -> list[str]:
        raise NotImplementedError

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        shown = {"plots": partial(self.plots, request)}
        return super().changelist_view(request, {**(extra_context or {}), **shown})  # type: ignore[misc]


class Titled:
    """Pages named as people would name the row; ``title_of`` says how."""

    def title_of(self, obj: Any) -> str:
        return str(obj)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        found = self.get_object(request, object_id) if object_id else None  # type: ignore[attr-defined]
        if found is not None:
            # Read by templates/unfold/helpers/header_title.html.
            title = request.page_title = self.title_of(found)  # type: ignore[attr-defined]
            extra_context = {**(extra_context or {}), "title": title, "subtitle": None}
        return super().changeform_view(request, object_id, form_url, extra_context)  # type: ignore[misc]


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
    link = (
        '<a href="{}" title="{}" rel="noopener noreferrer" target="_blank" class="text-link">{}</a>'
    )
    return format_html(link, url, url, shown)


def short_url(url: str) -> str:
    """Its host and the end of its path; the whole of it on hovering."""
    host, slash, path = url.partition("://")[2].partition("/")
    tail = path if len(path) <= TAIL_CHARS else f"…{path[1 - TAIL_CHARS :]}"
    shown = f"{host[:HOST_CHARS]}{slash}{tail}" if host else url[:TAIL_CHARS]
    box = "display:inline-block;min-width:12rem;overflow-wrap:anywhere"
    return format_html('<span title="{}" style="{}">{}</span>', url, box, shown)


def short_path(url: str) -> str:
    """As ``short_url``, beside a column that names the host."""
    host, _, path = url.partition("://")[2].partition("/")
    tail = path if len(path) <= TAIL_CHARS else f"…{path[1 - TAIL_CHARS :]}"
    box = "display:inline-block;min-width:10rem;overflow-wrap:anywhere"
    return format_html(
        '<span title="{}" style="{}">{}</span>', url, box, f"/{tail}" if host else url
    )


def moment(value: dt.datetime | None) -> str | None:
    """Pages would show what a method answers to the microsecond, unlike a field."""
    return None if value is None else date_format(localtime(value), "DATETIME_FORMAT")


def shown_once(text: str, secret: str) -> str:
    """A message with a secret, and a button to copy it."""
    box = (
        '{}, shown only now: <code class="shown-once" style="overflow-wrap:anywhere">{}</code>'
        ' <button type="button" data-copy class="cursor-pointer font-semibold'
        ' underline">Copy</button>'
    )
    return format_html(box, text, secret)


def countdown(until: dt.datetime) -> str:
    """The time that is left; common/countdown.js counts it down."""
    shown = (
        '<time datetime="{0}" data-until="{0}" title="{1}" style="white-space:nowrap">{1}</time>'
    )
    return format_html(shown, until.isoformat(), moment(until))


def picture(svg: str, *, alt: str) -> str:
    """An SVG as an image: whatever is in it cannot reach the page."""
    data = base64.b64encode(svg.encode()).decode()
    return format_html('<img src="data:image/svg+xml;base64,{}" alt="{}">', data, alt)


def block(text: str) -> str:
    """Text with its own line breaks; a long one scrolls in its box."""
    box = '<pre class="whitespace-pre-wrap" style="max-height:24rem;overflow:auto">{}</pre>'
    return format_html(box, text)


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
