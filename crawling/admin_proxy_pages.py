"""Two pages beside the list of proxies: a pasted list is imported, chosen ones are assigned."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.admin import actor_of
from common.console import add_refusal, do_each
from common.errors import Refused
from crawling import proxy_pool
from crawling.models import Domain, Proxy
from crawling.proxy_pool import Line

LIST = "admin:crawling_proxy_changelist"
EXAMPLE = "192.0.2.10:8000\n192.0.2.11:8000:user:password\nsocks5://user:password@192.0.2.12:1080"


class ImportForm(forms.Form):
    text = forms.CharField(
        label="Proxies, one a line",
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 10, "placeholder": EXAMPLE, "spellcheck": "false"}
        ),
        help_text="host:port, host:port:user:password, or a URL.",
    )
    protocol = forms.ChoiceField(
        choices=Proxy.Protocol.choices,
        widget=UnfoldAdminSelectWidget,
        help_text="Of lines that name none.",
    )
    pool = forms.CharField(max_length=64, required=False, widget=UnfoldAdminTextInputWidget)
    provider = forms.CharField(max_length=100, required=False, widget=UnfoldAdminTextInputWidget)
    country_code = forms.RegexField(
        r"^[A-Za-z]{2}$",
        label="Country",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        error_messages={"invalid": "Two letters, such as DE."},
    )
    monthly_cost = forms.DecimalField(
        label="Monthly cost of each",
        max_digits=10,
        decimal_places=2,
        min_value=0,
        required=False,
        widget=UnfoldAdminDecimalFieldWidget,
    )

    def lines(self, request: HttpRequest, *, dry_run: bool) -> list[Line]:
        """What became of each; none where the text is refused as a whole."""
        facts = dict(self.cleaned_data)
        try:
            return proxy_pool.import_proxies(
                facts.pop("text"), actor=actor_of(request), dry_run=dry_run, **facts
            )
        except Refused as refused:
            add_refusal(self, refused)
            return []


class ImportPage:
    """Preview first, then import; lines that cannot be read stay in the box to be mended."""

    actions_list = ["import_proxies"]

    @action(description="Import a list", url_path="import", permissions=["add"], icon="upload")  # type: ignore[untyped-decorator]
    def import_proxies(self, request: HttpRequest) -> HttpResponse:
        form = ImportForm(request.POST or None)
        lines: list[Line] = []
        imported = "import" in request.POST
        if form.is_bound and form.is_valid():
            lines = form.lines(request, dry_run=not imported)
        counts = Counter(line.result for line in lines)
        if imported and lines:
            messages.success(request, _told(counts))
            if not counts["invalid"]:
                return HttpResponseRedirect(reverse(LIST))
            form = ImportForm(form.cleaned_data | {"text": _unread(form, lines)})
        site: Any = self.admin_site  # type: ignore[attr-defined]
        context = site.each_context(request) | {
            "title": "Import proxies",
            "form": form,
            "lines": lines,
            "told": "" if imported else _told(counts, would="would be "),
        }
        return TemplateResponse(request, "admin/crawling/import_proxies.html", context)


def _told(counts: Counter[str], would: str = "") -> str:
    texts = {
        "created": f"{counts['created']} {would}imported",
        "duplicate": f"{counts['duplicate']} known already",
        "invalid": f"{counts['invalid']} not readable",
    }
    return ", ".join(text for kind, text in texts.items() if counts[kind] or kind == "created")


def _unread(form: ImportForm, lines: list[Line]) -> str:
    texts = form.cleaned_data["text"].splitlines()
    return "\n".join(texts[line.number - 1] for line in lines if line.result == "invalid")


class AssignForm(forms.Form):
    host = forms.CharField(
        label="Domain",
        max_length=260,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "shop.example"}),
        help_text="From then on it is crawled through its proxies only.",
    )
    priority = forms.IntegerField(
        min_value=1,
        max_value=10,
        initial=5,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="1 is preferred, 10 the last resort.",
    )

    def clean_host(self) -> Domain:
        host = str(self.cleaned_data["host"]).lower()
        domain = Domain.objects.filter(host=host).first()
        if domain is None:
            raise forms.ValidationError("No such domain: each comes with the first website on it.")
        return domain


class AssignPage:
    """An action that asks for the domain before it acts."""

    @admin.action(description="Assign to a domain …", permissions=["change"])
    def assign(self, request: HttpRequest, chosen: QuerySet[Proxy]) -> HttpResponse | None:
        form = AssignForm(request.POST if "assign" in request.POST else None)
        if not form.is_valid():
            site: Any = self.admin_site  # type: ignore[attr-defined]
            context = site.each_context(request) | {
                "title": "Assign to a domain",
                "form": form,
                "proxies": chosen,
            }
            return TemplateResponse(request, "admin/crawling/assign_proxies.html", context)
        domain, priority = form.cleaned_data["host"], form.cleaned_data["priority"]
        actor = actor_of(request)
        do_each(
            request,
            chosen,
            lambda proxy: proxy_pool.assign(domain, proxy, actor=actor, priority=priority),
            f"assigned to {domain.host}",
        )
        return None
