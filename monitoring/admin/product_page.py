"""The page of one product: chart, timeline, provenance, what was read; target and delisting."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.safestring import SafeString
from unfold.decorators import action as unfold_action

from accounts.admin import actor_of
from common.errors import Refused
from monitoring import alert_rules, delisting, product_control, stories
from monitoring.admin.pictures import CHANGE_TONES
from monitoring.changes import plain
from monitoring.models import AlertRule, Product
from monitoring.stories import RANGES

TARGET = "monitoring_product_target"
KINDS = {
    AlertRule.Kind.TARGET_BELOW.value: "at or below",
    AlertRule.Kind.TARGET_ABOVE.value: "at or above",
}
COLUMNS = {column.name for column in Product._meta.concrete_fields}
# Where the product keeps what a page said, if not under the same name.
KEPT_AS = {
    "price": "current_price",
    "currency": "current_currency",
    "stock_status": "current_stock_status",
    "stock": "current_stock_status",
}


class RangeForm(forms.Form):
    days = forms.TypedChoiceField(choices=list(RANGES.items()), coerce=int)


class TargetForm(forms.Form):
    kind = forms.ChoiceField(choices=list(KINDS.items()))
    value = forms.DecimalField(max_digits=14, decimal_places=4, min_value=Decimal("0.0001"))


class ProductPage:
    """What the form of a product has around it."""

    change_form_outer_before_template = "admin/monitoring/product_story.html"
    change_form_outer_after_template = "admin/monitoring/product_details.html"
    actions_submit_line = ["approve_this", "reject_this", "crawl_this"]
    actions_submit_line += ["pause_this", "resume_this", "delist_this"]

    def get_urls(self) -> list[Any]:
        site: Any = self.admin_site  # type: ignore[attr-defined]
        own = path("<uuid:pk>/target/", site.admin_view(self.set_target), name=TARGET)
        return [own, *super().get_urls()]  # type: ignore[misc]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        product = self.get_object(request, object_id)  # type: ignore[attr-defined]
        if product is not None and request.method == "GET":
            extra_context = {**(extra_context or {}), **_told(request, product)}
        answer: HttpResponse = super().change_view(  # type: ignore[misc]
            request, object_id, form_url, extra_context
        )
        return answer

    def set_target(self, request: HttpRequest, pk: Any) -> HttpResponse:
        if request.method != "POST" or not self.has_review_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        product = get_object_or_404(Product.objects.select_related("website"), pk=pk)
        form = TargetForm(request.POST)
        if not form.is_valid():
            messages.error(request, "A target is a price above 0.")
        else:
            self._add_target(request, product, form.cleaned_data)
        return HttpResponseRedirect(reverse("admin:monitoring_product_change", args=[pk]))

    def _add_target(self, request: HttpRequest, product: Product, wanted: dict[str, Any]) -> None:
        try:
            rule = alert_rules.create_rule(
                product.website, product=product, actor=actor_of(request), **wanted
            )
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            said = stories.target_in_words(rule)
            messages.success(request, f"The client is told: {said.lower()}.")

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what would change something."""
        found: list[Any] = super().get_actions_submit_line(request, object_id)  # type: ignore[misc]
        product = self.get_object(request, str(object_id))  # type: ignore[attr-defined]
        useless = _useless(product) if product is not None else ()
        return [one for one in found if not one.action_name.endswith(tuple(useless))]

    @unfold_action(description="Crawl now", permissions=["review"], icon="refresh")  # type: ignore[untyped-decorator]
    def crawl_this(self, request: HttpRequest, product: Product) -> None:
        self._do_one(request, product, "crawl", "is being crawled")

    @unfold_action(description="Pause", permissions=["review"], icon="pause")  # type: ignore[untyped-decorator]
    def pause_this(self, request: HttpRequest, product: Product) -> None:
        self._do_one(request, product, "pause", "is paused")

    @unfold_action(description="Resume", permissions=["review"], icon="play_arrow")  # type: ignore[untyped-decorator]
    def resume_this(self, request: HttpRequest, product: Product) -> None:
        self._do_one(request, product, "resume", "is watched again")

    @unfold_action(description="Delist", permissions=["review"], icon="unpublished")  # type: ignore[untyped-decorator]
    def delist_this(self, request: HttpRequest, product: Product) -> None:
        try:
            delisting.delist(product, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{product} is delisted, and the client is told.")

    def _do_one(self, request: HttpRequest, product: Product, job: str, done: str) -> None:
        visible = Product.objects.all()
        (outcome,) = product_control.act_on_many(
            job, [product.pk], visible, actor=actor_of(request), dry_run=False
        )
        if outcome.result == "refused":
            messages.error(request, outcome.detail)
        else:
            messages.success(request, f"{product} {done}.")


def _useless(product: Product) -> set[str]:
    """Buttons that would change nothing, or be refused."""
    if product.approval != Product.Approval.APPROVED:
        return {"crawl_this", "pause_this", "resume_this", "delist_this"}
    if product.is_active:
        return {"resume_this"}
    return {"pause_this", "delist_this"} if product.delisted_at else {"pause_this"}


def _provenance(product: Product) -> list[tuple[str, Any, dict[str, Any]]]:
    """What is known, and which part of the page said so."""
    return [
        (name, _known(product, KEPT_AS.get(name, name)), one)
        for name, one in sorted(product.provenance.items())
    ]


def _known(product: Product, name: str) -> Any:
    if name not in COLUMNS:
        return None
    value = getattr(product, name)
    return plain(value) if isinstance(value, Decimal) else value


def _told(request: HttpRequest, product: Product) -> dict[str, Any]:
    form = RangeForm(request.GET)
    days = form.cleaned_data["days"] if form.is_valid() else stories.fitting_range(product)
    story = stories.tell(product, days)
    return {
        "product": product,
        "story": story,
        # Drawn by monitoring.charts, which escapes the texts.
        "chart": SafeString(story.chart),
        "ranges": RANGES,
        "timeline": [(CHANGE_TONES.get(one.kind, "quiet"), one) for one in story.changes],
        "provenance": _provenance(product),
        "target_kinds": KINDS,
        "targets": [stories.target_in_words(rule) for rule in story.targets],
        "may_review": request.user.has_perm("monitoring.change_product"),
    }
