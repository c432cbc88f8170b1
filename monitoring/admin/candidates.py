"""The review queue: what discovery found, the most likely first, decided by keys."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.admin import actor_of
from common.console import Pictured, inside_link, short_url
from common.console_csv import CsvList
from common.errors import InvalidState, Refused
from monitoring import reviews, websites
from monitoring.admin.pictures import score_histogram
from monitoring.admin.products import ProductScreen
from monitoring.models import Candidate, Product, Website

LIST = "admin:monitoring_candidate_changelist"
MANY = "monitoring_candidate_many"
SHOWN = 25


class ScoreFilter(admin.SimpleListFilter):
    """With "select all" this approves everything from a score on."""

    title = "score"
    parameter_name = "score_min"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(text, f"{text} or more") for text in ("0.95", "0.9", "0.8", "0.6")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        known = {value for value, _ in self.lookup_choices}
        wanted = self.value()
        return rows.filter(discovery_score__gte=float(wanted)) if wanted in known else rows


class ManyForm(forms.Form):
    """Which candidates are meant: all of a score, or all under a pattern."""

    website = forms.ModelChoiceField(
        Website.objects.order_by("name"),
        required=False,
        empty_label="Every website",
        widget=UnfoldAdminSelectWidget,
    )
    score_min = forms.FloatField(
        label="Score from",
        min_value=0,
        max_value=1,
        required=False,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "0.01", "placeholder": "0.9"}),
        help_text="Approves these and all above; possible duplicates wait for a look.",
    )
    url_pattern = forms.CharField(
        label="Pattern",
        max_length=255,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "/outlet/*"}),
        help_text="Bans these addresses: rejected now, and never read again.",
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        if (data["score_min"] is None) == (data["url_pattern"] == ""):
            self.add_error(None, "Give either a score to approve from, or a pattern to ban.")
        if data["url_pattern"] and data["website"] is None:
            self.add_error("website", "A pattern is banned for one website: choose it.")
        return data

    @property
    def is_ban(self) -> bool:
        return bool(self.cleaned_data["url_pattern"])

    def refuse_unseen(self, ids: Sequence[uuid.UUID]) -> None:
        """What was found since the look is approved only after another one."""
        if not self.is_ban and self.data.get("seen") != fingerprint(ids):
            raise InvalidState("The queue has changed since you looked: this is how it is now.")

    def ids(self) -> list[uuid.UUID]:
        """Raises ``Refused`` for a pattern that means nothing."""
        website, pattern = self.cleaned_data["website"], self.cleaned_data["url_pattern"]
        return reviews.pending_ids(
            Product.objects.all(),
            website=website.pk if website else None,
            score_min=self.cleaned_data["score_min"],
            url_pattern=pattern or None,
            duplicates=None if pattern else False,
        )


def fingerprint(ids: Sequence[uuid.UUID]) -> str:
    """Of what a page showed: two lists that differ have different ones."""
    return hashlib.blake2b(b"".join(sorted(pk.bytes for pk in ids)), digest_size=16).hexdigest()


class ManyPage:
    """Decides many at once: what is meant is shown before it is done."""

    def get_urls(self) -> list[Any]:
        site: Any = self.admin_site  # type: ignore[attr-defined]
        own = path("many/", site.admin_view(self.decide_many), name=MANY)
        return [own, *super().get_urls()]  # type: ignore[misc]

    def decide_many(self, request: HttpRequest) -> HttpResponse:
        if not self.has_review_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        given = request.POST if request.method == "POST" else request.GET
        form = ManyForm(given or None)
        ids: list[uuid.UUID] = []
        asked = False
        if form.is_bound and form.is_valid():
            try:
                ids = form.ids()
                asked = True
                if request.method == "POST":
                    form.refuse_unseen(ids)
                    return self._decide_all(request, form, ids)
            except Refused as refused:
                form.add_error(None, refused.detail)
        site: Any = self.admin_site  # type: ignore[attr-defined]
        context = site.each_context(request) | {
            "title": "Decide many",
            "form": form,
            "asked": asked,
            "ids": ids,
            "seen": fingerprint(ids),
            "most": reviews.MAX_ITEMS,
            "sample": Product.objects.filter(id__in=ids[:SHOWN])
            .select_related("website")
            .order_by("-discovery_score", "id"),
        }
        return TemplateResponse(request, "admin/monitoring/decide_many.html", context)

    def _decide_all(
        self, request: HttpRequest, form: ManyForm, ids: list[uuid.UUID]
    ) -> HttpResponse:
        if form.is_ban:
            website, pattern = form.cleaned_data["website"], form.cleaned_data["url_pattern"]
            count = websites.ban_pattern(website, pattern, actor=actor_of(request))
            messages.success(request, f"{count} rejected; {pattern} is not read again.")
        else:
            outcomes = reviews.decide(
                "approve", ids, Product.objects.all(), actor=actor_of(request)
            )
            done = sum(outcome.result == "approved" for outcome in outcomes)
            messages.success(request, f"{done} of {len(ids)} approved.")
            for detail in sorted({one.detail for one in outcomes if one.result == "refused"}):
                messages.error(request, detail)
        return HttpResponseRedirect(reverse(LIST))


@admin.register(Candidate)
class CandidateAdmin(ManyPage, CsvList, Pictured, ProductScreen):
    """Pending products, the most likely first."""

    list_before_template = "admin/monitoring/review_tools.html"
    list_display = [
        "tile",
        "named",
        "website",
        "price",
        "stock",
        "score",
        "reason",
    ]
    list_display_links = ["tile", "named"]
    csv_columns = [
        "id",
        "name",
        "original_url",
        "website__name",
        "current_price",
        "current_currency",
        "current_stock_status",
        "discovery_score",
        "discovery_reason",
        "extraction_method",
        "duplicate_reason",
        "discovered_at",
    ]
    list_filter = [
        ScoreFilter,
        ("duplicate_of", admin.EmptyFieldListFilter),
        ("vanished_at", admin.EmptyFieldListFilter),
        "current_stock_status",
        "extraction_method",
        "website",
    ]
    list_select_related = ["website", "duplicate_of"]
    actions = ["approve", "reject", "ban"]
    ordering = ["-discovery_score", "-id"]
    empty_text = "Nothing waits for review. Discovery of a website fills this list."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(approval=Product.Approval.PENDING)

    def plots(self, request: HttpRequest) -> list[str]:
        return [score_histogram()]

    def url_after(self, request: HttpRequest, product: Product) -> str:
        """On to the next one of the website, until its queue is empty."""
        waiting = self.get_queryset(request).filter(website_id=product.website_id)
        following = waiting.order_by(*self.ordering).values_list("pk", flat=True).first()
        if following is None:
            return reverse("admin:monitoring_candidate_changelist")
        return reverse("admin:monitoring_candidate_change", args=[following])

    @admin.action(description="Reject and ban their folders", permissions=["review"])
    def ban(self, request: HttpRequest, chosen: QuerySet[Product]) -> None:
        ids = list(chosen.values_list("id", flat=True))
        try:
            count = websites.ban_folders_of(ids, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{count} rejected; their folders are not read again.")

    @admin.display(description="Candidate", ordering="name")
    def named(self, product: Product) -> str:
        cell = '<span class="name">{}<span class="below">{}</span></span>'
        return format_html(cell, str(product), short_url(product.original_url))

    @admin.display(description="Why", ordering="discovery_reason")
    def reason(self, product: Product) -> str:
        cell = '<span class="reason">{}<span class="below">{}{}</span></span>'
        return format_html(
            cell, product.discovery_reason, product.extraction_method, _twin(product)
        )


def _twin(product: Product) -> str:
    if product.duplicate_of is None:
        return ""
    url = reverse("admin:monitoring_product_change", args=[product.duplicate_of_id])
    link = inside_link(url, str(product.duplicate_of))
    cell = '<br><b class="plot-warn">Possible duplicate</b>: {}: {}'
    return format_html(cell, product.duplicate_reason, link)
