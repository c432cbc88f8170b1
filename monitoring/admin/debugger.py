"""The extraction debugger: what was read from a page, by which method, what lost and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from common.console import add_refusal
from common.errors import Refused
from crawling.models import CrawlTask, StoredPage
from crawling.pages import PageLost
from extraction.items import Lost
from extraction.sites import PARSERS
from monitoring import previews
from monitoring.models import Product, Website
from monitoring.previews import Preview

NAME = "monitoring_product_debugger"
LONGEST_HTML = 5_000_000
UTF8 = "text/html; charset=utf-8"
DRY_RUN = "A dry run: the page is fetched at the pace of its shop, and nothing of it is kept."
LOST_PAGE = "The file of this page is gone; it is stored again when it is seen again."


class DebuggerForm(forms.Form):
    url = forms.CharField(
        label="URL",
        max_length=2048,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "https://shop.example/p/42"}),
        help_text="Fetched at the pace of its shop, unless HTML is given.",
    )
    html = forms.CharField(
        label="HTML",
        required=False,
        max_length=LONGEST_HTML,
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "placeholder": "<html>…"}),
        help_text="The source of a page; then nothing is fetched.",
    )
    parser_name = forms.ChoiceField(
        label="Parser",
        required=False,
        choices=[("", "As the domain has it"), *((name, name) for name in PARSERS)],
        widget=UnfoldAdminSelectWidget,
    )
    currency = forms.RegexField(
        r"^[A-Z]{3}$",
        label="Currency hint",
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "EUR"}),
    )
    locale = forms.CharField(
        label="Locale hint",
        required=False,
        max_length=16,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "de-DE"}),
    )

    @property
    def hints(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("parser_name", "currency", "locale")}

    def read(self) -> Preview | None:
        """None where the fetch was refused; the form then says why."""
        url, html = self.cleaned_data["url"], self.cleaned_data["html"]
        try:
            if html.strip():
                body = html.encode("utf-8", "replace")
                return previews.preview_html(body, url, content_type=UTF8, **self.hints)
            return previews.preview_url(url, **self.hints)
        except Refused as refused:
            add_refusal(self, refused)
            return None


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored page, and whose it is."""

    stored: StoredPage | None
    url: str
    website: Website | None
    about: str
    is_dry_run: bool = False


class Debugger:
    """A page beside the products."""

    def get_urls(self) -> list[Any]:
        site: Any = self.admin_site  # type: ignore[attr-defined]
        own = path("debugger/", site.admin_view(self.debug), name=NAME)
        return [own, *super().get_urls()]  # type: ignore[misc]

    def debug(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        may_fetch = request.user.has_perm("monitoring.change_product")
        context: dict[str, Any] = {"title": "Extraction debugger", "may_fetch": may_fetch}
        if request.method == "POST":
            if not may_fetch:
                raise PermissionDenied
            context["form"] = form = DebuggerForm(request.POST)
            context["found"] = form.read() if form.is_valid() else None
        else:
            context |= _from_store(_kept(request))
        context |= _tables(context["found"])
        site: Any = self.admin_site  # type: ignore[attr-defined]
        everything = site.each_context(request) | context
        return TemplateResponse(request, "admin/monitoring/debugger.html", everything)


def _kept(request: HttpRequest) -> Kept | None:
    try:
        if asked := request.GET.get("product"):
            return _of_product(
                get_object_or_404(Product.objects.select_related("website"), pk=asked)
            )
        if asked := request.GET.get("website"):
            return _of_website(get_object_or_404(Website, pk=asked))
        if asked := request.GET.get("task"):
            return _of_task(
                get_object_or_404(CrawlTask.objects.select_related("stored_page"), pk=asked)
            )
    except (ValueError, forms.ValidationError):
        return None
    return None


def _of_product(product: Product) -> Kept:
    stored = StoredPage.objects.filter(content_hash=product.page_hash).first()
    return Kept(stored, product.original_url, product.website, f"the newest page of {product}")


def _of_website(website: Website) -> Kept:
    """Nothing stored is shown: a page of it is fetched when the button is pressed."""
    watched = website.products.all().monitored().order_by("-last_crawled_at").first()
    url = watched.original_url if watched else next(iter(website.seed_urls), website.base_url)
    return Kept(None, url, website, f"a dry run of {website}", is_dry_run=True)


def _of_task(task: CrawlTask) -> Kept:
    website = Website.objects.filter(pk=task.website_id).first() if task.website_id else None
    return Kept(task.stored_page, task.final_url or task.url, website, "the stored page of a task")


def _from_store(kept: Kept | None) -> dict[str, Any]:
    if kept is None:
        return {"form": DebuggerForm(), "found": None}
    given = {"url": kept.url}
    if kept.website is not None:
        given |= {"currency": kept.website.currency, "locale": kept.website.locale}
    context: dict[str, Any] = {"form": DebuggerForm(initial=given), "about": kept.about}
    if kept.is_dry_run:
        return context | {"found": None, "trouble": DRY_RUN}
    if kept.stored is None:
        return context | {"found": None, "trouble": "No page of it is stored: fetch it instead."}
    try:
        found = previews.preview_stored(kept.stored, kept.url, kept.website)
    except PageLost:
        return context | {"found": None, "trouble": LOST_PAGE}
    return context | {"found": found, "stored": kept.stored}


def _tables(found: Preview | None) -> dict[str, Any]:
    """Scored candidates by score, and whatever else lost."""
    if found is None:
        return {}
    scored = [lost for lost in found.lost if lost.score is not None]
    plain = [lost for lost in found.lost if lost.score is None]
    return {"scored": sorted(scored, key=_score, reverse=True), "unscored": plain}


def _score(lost: Lost) -> float:
    return lost.score or 0.0
