"""The form of a website: what is asked, and what the job modules refuse at which field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.audit import Actor
from common.console import add_refusal
from common.errors import Refused
from monitoring import websites
from monitoring.models import Website
from monitoring.registration import Registration, register_website
from notifications import endpoints


def patterns_field(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text=help_text,
    )


class WebsiteForm(forms.ModelForm):  # type: ignore[type-arg]
    """Saving is the affair of the job modules; what they refuse shows at the field."""

    actor: Actor
    seed_urls = forms.CharField(
        label="Seed URLs",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Where discovery starts, one per line; else the base URL.",
    )
    webhook_endpoint_url = forms.CharField(
        label="Webhook URL",
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Hears about this website only, signed with the client's secret.",
    )

    auto_approve_score = forms.FloatField(
        label="Approve from score",
        required=False,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
        help_text="Candidates with this score or more need nobody's approval; empty: all do.",
    )
    auto_approve_include = patterns_field("Only these URLs", "/p/* means all below; empty: all.")
    auto_approve_exclude = patterns_field("But not these URLs", "One pattern per line.")
    banned_patterns = patterns_field(
        "Banned URLs", "Neither read nor candidates: /outlet/* One pattern per line."
    )

    class Meta:
        model = Website
        fields = [
            "client",
            "base_url",
            "seed_urls",
            "name",
            "kind",
            "crawl_frequency_minutes",
            "price_change_threshold_pct",
            "price_change_threshold_abs",
            "retention_days",
            "crawl_profile",
            "currency",
            "locale",
            "webhook_enabled",
            "discovery_max_pages",
        ]
        labels = {
            "base_url": "Base URL",
            "crawl_frequency_minutes": "Crawl frequency",
            "price_change_threshold_pct": "Threshold in percent",
            "price_change_threshold_abs": "Threshold in money",
        }
        help_texts = {
            "price_change_threshold_pct": "Tell about price changes of at least so many percent,",
            "price_change_threshold_abs": "or of at least this amount.",
            "retention_days": "30 to 365.",
            "currency": "For pages that leave it open: an ISO code such as EUR.",
            "locale": "For pages that leave it open: such as de-CH.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            urls = endpoints.website_endpoint_urls([self.instance.pk])
            self.initial["webhook_endpoint_url"] = urls.get(self.instance.pk, "")
            self._show_rules()
        elif "name" in self.fields:
            self.fields["name"].required = False
            self.fields["name"].help_text = "Else the host."

    def _show_rules(self) -> None:
        rule = self.instance.auto_approve or {}
        self.initial["auto_approve_score"] = rule.get("min_score")
        for name in ("include", "exclude"):
            self.initial[f"auto_approve_{name}"] = "\n".join(rule.get(name, []))
        self.initial["banned_patterns"] = "\n".join(self.instance.banned_patterns)

    def clean_seed_urls(self) -> list[str]:
        return str(self.cleaned_data["seed_urls"]).split()

    def clean(self) -> dict[str, Any]:
        """The rule is three fields here and one value everywhere else."""
        data: dict[str, Any] = super().clean() or {}
        score = data.pop("auto_approve_score", None)
        lists = {
            name: str(data.pop(f"auto_approve_{name}", "")).split()
            for name in ("include", "exclude")
        }
        data["auto_approve"] = None if score is None else {"min_score": score, **lists}
        data["banned_patterns"] = str(data.get("banned_patterns", "")).split()
        return data

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.instance = self._register() if self.instance._state.adding else self._update()
        except Refused as refused:
            add_refusal(self, refused)

    def _register(self) -> Website:
        given = self._given(self.cleaned_data)
        client = given.pop("client")
        return register_website(client, Registration(**given), actor=self.actor)

    def _update(self) -> Website:
        changes: Any = self._given(self.changed_data)
        return websites.update_website(self.instance, actor=self.actor, **changes)

    def _given(self, names: Iterable[str]) -> dict[str, Any]:
        named = {re.sub("^auto_approve_.*", "auto_approve", name) for name in names}
        given = {name: self.cleaned_data[name] for name in named}
        if "crawl_profile" in given:
            profile = given.pop("crawl_profile")
            given["crawl_profile_id"] = profile.pk if profile else None
        return given
