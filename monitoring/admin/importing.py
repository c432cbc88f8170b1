"""A page beside the lists of websites and products: lines are tried first, then taken."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from accounts.admin import actor_of
from accounts.audit import Actor
from accounts.models import Client
from common.console import add_refusal
from common.errors import Invalid, Refused
from monitoring import watching
from monitoring.api.imports import registration_of
from monitoring.imports import import_websites, read_csv
from monitoring.models import Website
from monitoring.watching import Line

MAX_BYTES = 2_000_000
TAKEN = ("registered", "watched", "candidate")


class ListForm(forms.Form):
    """Pasted text or a file, for one client."""

    column = ""
    example = ""

    client = forms.ModelChoiceField(
        Client.objects.filter(is_active=True).order_by("name"), widget=UnfoldAdminSelectWidget
    )
    file = forms.FileField(
        label="CSV file",
        required=False,
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,text/csv"}),
        help_text="In UTF-8; or paste its text below.",
    )
    text = forms.CharField(
        label="List",
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false"}),
    )

    def clean_file(self) -> str:
        given = self.cleaned_data["file"]
        if given is None:
            return ""
        if given.size > MAX_BYTES:
            raise forms.ValidationError("At most 2 MB: split the list.")
        try:
            return str(given.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise forms.ValidationError("Not UTF-8: save it as CSV in UTF-8.") from error

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        data["text"] = data.get("file") or data.get("text", "")
        if not data["text"].strip() and not self.errors:
            self.add_error("text", "Paste a list, or choose a file.")
        return data

    def lines(self, actor: Actor, *, dry_run: bool) -> list[Line]:
        """What became of each; none where the list is refused as a whole."""
        try:
            return self.take(actor, dry_run=dry_run)
        except Invalid as refused:
            self.add_error("text", refused.detail)
        except Refused as refused:
            add_refusal(self, refused)
        return []

    def rows(self) -> list[dict[str, str]]:
        return read_csv(self.cleaned_data["text"], required=self.column)

    def take(self, actor: Actor, *, dry_run: bool) -> list[Line]:
        raise NotImplementedError


class WebsiteListForm(ListForm):
    column = "base_url"
    example = "base_url,name,seed_urls\nhttps://shop.example.com/,Example Shop,"

    def take(self, actor: Actor, *, dry_run: bool) -> list[Line]:
        client = self.cleaned_data["client"]
        return import_websites(client, self.rows(), registration_of, actor=actor, dry_run=dry_run)


class ProductListForm(ListForm):
    column = "url"
    example = "url\nhttps://shop.example.com/products/desk-lamp"

    website = forms.ModelChoiceField(
        Website.objects.order_by("name"),
        required=False,
        empty_label="By the host of each page",
        widget=UnfoldAdminSelectWidget,
    )
    approve = forms.BooleanField(
        label="Watch them at once",
        required=False,
        initial=True,
        help_text="Else they become candidates.",
    )

    def take(self, actor: Actor, *, dry_run: bool) -> list[Line]:
        website = self.cleaned_data["website"]
        return watching.import_urls(
            self.cleaned_data["client"],
            [row.get("url", "") for row in self.rows()],
            website_id=website.pk if website else None,
            approve=self.cleaned_data["approve"],
            dry_run=dry_run,
            actor=actor,
        )


class ImportPage:
    """Preview first, then import; lines that are refused stay in the answer."""

    import_form: type[ListForm] = ProductListForm
    actions_list = ["import_list"]

    def has_import_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        options = self.model._meta  # type: ignore[attr-defined]
        return request.user.has_perm(f"{options.app_label}.add_{options.model_name}")

    @action(description="Import a list", url_path="import", permissions=["import"], icon="upload")  # type: ignore[untyped-decorator]
    def import_list(self, request: HttpRequest) -> HttpResponse:
        bound = request.method == "POST"
        form = self.import_form(request.POST, request.FILES) if bound else self.import_form()
        dry_run = "import" not in request.POST
        lines: list[Line] = []
        if form.is_bound and form.is_valid():
            lines = form.lines(actor_of(request), dry_run=dry_run)
        told = _told(lines, would="would be " if dry_run else "") if lines else ""
        if lines and not dry_run:
            messages.success(request, told)
            if not any(line.result == "refused" for line in lines):
                return HttpResponseRedirect(self._list_url())
        return self._page(request, form, lines, told)

    def _list_url(self) -> str:
        options = self.model._meta  # type: ignore[attr-defined]
        return reverse(f"admin:{options.app_label}_{options.model_name}_changelist")

    def _page(
        self, request: HttpRequest, form: ListForm, lines: list[Line], told: str
    ) -> HttpResponse:
        if form.is_bound and lines:
            # A file is not sent back by a browser: its text goes into the box.
            form = type(form)(initial=form.cleaned_data | {"file": None})
        site: Any = self.admin_site  # type: ignore[attr-defined]
        noun = self.model._meta.verbose_name_plural  # type: ignore[attr-defined]
        context = site.each_context(request) | {
            "title": f"Import {noun}",
            "form": form,
            "example": self.import_form.example,
            "lines": lines,
            "told": told,
        }
        return TemplateResponse(request, "admin/monitoring/import_list.html", context)


def _told(lines: list[Line], *, would: str) -> str:
    counts = Counter(line.result for line in lines)
    parts = [f"{counts[name]} {would}{_word(name)}" for name in TAKEN if counts[name]]
    same = counts["known"] + counts["unchanged"]
    parts += [f"{same} known already"] if same else []
    parts += [f"{counts['refused']} refused"] if counts["refused"] else []
    return ", ".join(parts) or "Nothing to import"


def _word(result: str) -> str:
    return {"candidate": "a candidate"}.get(result, result)
