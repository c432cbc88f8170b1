"""Proxies in the console: their list, their page with the domains they serve, the import."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action as unfold_action
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminSelectWidget

from accounts.admin import actor_of
from common.console import (
    BAD,
    GOOD,
    WARN,
    Buttons,
    ReadOnly,
    Titled,
    add_refusal,
    badge,
    do_each,
    without_secrets,
)
from common.console_csv import CsvList
from common.errors import Refused
from crawling import proxy_pool, pulses
from crawling.admin_plots import Strip
from crawling.admin_proxy_pages import AssignPage, ImportPage
from crawling.models import DomainProxy, Proxy
from crawling.models.proxies import Health

# All at the same time, for ten seconds at most.
MOST_TESTED = 50
STATES = {"Active": GOOD, "Resting": WARN, "Off": BAD}


class HealthColumns:
    """How a proxy has served, in a list or beside a domain."""

    @admin.display(description="Success", empty_value="—")
    def success(self, row: Health) -> str | None:
        if row.success_pct is None:
            return None
        bar = '<span style="white-space:nowrap"><progress value="{}" max="100" style="width:3rem">'
        return format_html(bar + "</progress>&nbsp;{}&nbsp;%</span>", *[row.success_pct] * 2)

    @admin.display(description="Answers in", ordering="response_ms_ewma", empty_value="—")
    def speed(self, row: Health) -> str | None:
        mean = row.response_ms_ewma
        return None if mean is None else f"{mean:.0f}\u00a0ms"

    @admin.display(description="Last used", ordering="last_used_at", empty_value="—")
    def used(self, row: Health) -> str | None:
        return None if row.last_used_at is None else f"{timesince(row.last_used_at, depth=1)} ago"

    @badge("State", STATES, ordering="is_active")
    def state(self, row: Proxy | DomainProxy) -> str:
        return _state_of(row, timezone.now())


def _state_of(row: Proxy | DomainProxy, now: dt.datetime) -> str:
    if not row.is_active:
        return "Off"
    return "Resting" if row.resting_until and row.resting_until > now else "Active"


class AssignmentForm(forms.ModelForm):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            return
        # Another domain is another assignment: remove this one and add that.
        field, domain = self.fields["domain"], self.instance.domain
        field.disabled = True
        field.widget = UnfoldAdminSelectWidget(choices=[(domain.pk, domain.host)])


class DomainsOfProxy(HealthColumns, TabularInline):  # type: ignore[misc]
    model = DomainProxy
    form = AssignmentForm
    fields = ["domain", "priority", "is_active", "state", "success", "speed", "used"]
    readonly_fields = ["state", "success", "speed", "used"]
    autocomplete_fields = ["domain"]
    verbose_name = "domain"
    verbose_name_plural = "domains crawled through it"
    hide_title = True
    extra = 0
    per_page = 25

    def get_queryset(self, request: HttpRequest) -> QuerySet[DomainProxy]:
        rows: QuerySet[DomainProxy] = super().get_queryset(request)
        return rows.select_related("domain", "proxy").order_by("domain__host")


class ProxiesOfDomain(ReadOnly, HealthColumns, TabularInline):  # type: ignore[misc]
    """Assigned on the page of the proxy, or from the list of proxies."""

    model = DomainProxy
    fields = ["proxy", "priority", "state", "success", "speed", "used"]
    readonly_fields = fields
    verbose_name_plural = "proxies it is crawled through"
    hide_title = True
    extra = 0
    per_page = 25

    def get_queryset(self, request: HttpRequest) -> QuerySet[DomainProxy]:
        rows: QuerySet[DomainProxy] = super().get_queryset(request)
        return rows.select_related("domain", "proxy").order_by("priority", "id")


class ProxyForm(forms.ModelForm):  # type: ignore[type-arg]
    password = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Never shown. Empty: the one it has stays, unless the user name goes.",
    )

    class Meta:
        model = Proxy
        fields = list(proxy_pool.FIELDS)
        help_texts = {
            "host": "A name or an address.",
            "country_code": "Two letters, such as DE.",
            "max_requests_per_hour": "Empty: as many as its domains want.",
        }

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors or not {"host", "port"} & set(self.changed_data):
            return
        try:
            proxy_pool.check_proxy(self.instance)
        except Refused as refused:
            add_refusal(self, refused)

    @property
    def facts(self) -> dict[str, Any]:
        """What was changed; an empty password is no change."""
        given = {name: self.cleaned_data[name] for name in self.changed_data}
        if not given.get("password") and self.cleaned_data["username"]:
            given.pop("password", None)
        elif not self.cleaned_data["username"]:
            given["password"] = ""
        return given


@admin.register(Proxy)
class ProxyAdmin(
    CsvList,
    Strip,
    Buttons,
    Titled,
    ImportPage,
    AssignPage,
    HealthColumns,
    ModelAdmin,  # type: ignore[misc]
):
    read_pulses = staticmethod(pulses.of_proxies)
    csv_columns = [
        "protocol",
        "host",
        "port",
        "pool",
        "provider",
        "country_code",
        "city",
        "is_active",
        "disabled_reason",
        "success_count",
        "failure_count",
        "response_ms_ewma",
        "last_used_at",
        "monthly_cost",
    ]
    empty_text = "No proxy yet: shops are crawled directly. Add one, or import a list."
    form = ProxyForm
    list_display = [
        "address",
        "pool",
        "country",
        "state",
        "strip",
        "success",
        "speed",
        "used",
        "cost",
        "domains",
    ]
    actions_submit_line = ["test_this", "enable_this", "disable_this"]
    show_full_result_count = False
    list_filter = ["is_active", "protocol", "pool", "country_code", "provider"]
    search_fields = ["host", "pool", "provider"]
    actions = ["test", "enable", "disable", "assign"]
    readonly_fields = [
        "state",
        "disabled_reason",
        "success",
        "speed",
        "used",
        "consecutive_failures",
        "resting_until",
        "latency",
    ]
    inlines = [DomainsOfProxy]
    fieldsets = [
        (None, {"fields": ["protocol", ("host", "port"), ("username", "password")]}),
        (
            "Where it is from",
            {"fields": [("pool", "provider"), ("country_code", "city")]},
        ),
        ("Limits", {"fields": [("monthly_cost", "max_requests_per_hour")]}),
        (
            "Health",
            {
                "fields": [
                    ("state", "disabled_reason"),
                    ("success", "speed"),
                    ("used", "consecutive_failures", "resting_until"),
                    "latency",
                ]
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Proxy]:
        rows: QuerySet[Proxy] = super().get_queryset(request)
        return without_secrets(rows.annotate(domain_count=Count("domain_proxies")))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:-1]

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Only what would change something."""
        proxy = self.get_object(request, str(object_id))
        useless = "enable_this" if proxy is not None and proxy.is_active else "disable_this"
        found = super().get_actions_submit_line(request, object_id)
        return [button for button in found if button.method.__name__ != useless]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            answer: HttpResponse = super().changeform_view(request, *args, **kwargs)
        except Refused as refused:
            # Somebody was faster; nothing of the form is saved.
            messages.error(request, refused.detail)
            return HttpResponseRedirect(request.path)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        actor = actor_of(request)
        if change:
            proxy_pool.update_proxy(obj, actor=actor, **form.facts)
        else:
            made = proxy_pool.create_proxy(actor=actor, **form.facts)
            obj.pk, obj._state.adding = made.pk, False

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: Any) -> None:
        actor = actor_of(request)
        formset.save(commit=False)
        for mapping in formset.deleted_objects:
            proxy_pool.unassign(mapping, actor=actor)
        for mapping, changed in formset.changed_objects:
            facts: Any = {name: getattr(mapping, name) for name in changed}
            proxy_pool.update_mapping(mapping, actor=actor, **facts)
        for mapping in formset.new_objects:
            made = proxy_pool.assign(
                mapping.domain, form.instance, actor=actor, priority=mapping.priority
            )
            if not mapping.is_active:
                proxy_pool.update_mapping(made, actor=actor, is_active=False)

    def delete_model(self, request: HttpRequest, obj: Proxy) -> None:
        proxy_pool.delete_proxy(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Proxy]) -> None:
        for proxy in queryset:
            self.delete_model(request, proxy)

    @admin.action(description="Test", permissions=["change"])
    def test(self, request: HttpRequest, chosen: Any) -> None:
        proxies = list(chosen[:MOST_TESTED])
        try:
            trials = proxy_pool.try_many(proxies, actor=actor_of(request))
        except Refused as refused:
            messages.error(request, f"No proxy was tested. PROXY_TEST_URL: {refused.detail}")
            return
        for proxy, trial in zip(proxies, trials, strict=True):
            if trial.ok:
                answer = f"{trial.status} in {trial.elapsed_ms} ms" if trial.status else trial.error
                messages.success(request, f"{proxy} works: {answer}")
            else:
                messages.error(request, f"{proxy} does not work: {trial.error}")

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda proxy: proxy_pool.enable(proxy, actor=actor), "enabled")

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, chosen: Any) -> None:
        actor = actor_of(request)
        do_each(request, chosen, lambda proxy: proxy_pool.disable(proxy, actor=actor), "disabled")

    @unfold_action(description="Test", permissions=["change"], icon="speed")  # type: ignore[untyped-decorator]
    def test_this(self, request: HttpRequest, proxy: Proxy) -> None:
        self.test(request, [proxy])

    @unfold_action(description="Enable", permissions=["change"], icon="check")  # type: ignore[untyped-decorator]
    def enable_this(self, request: HttpRequest, proxy: Proxy) -> None:
        self.enable(request, [proxy])

    @unfold_action(description="Disable", permissions=["change"], icon="block")  # type: ignore[untyped-decorator]
    def disable_this(self, request: HttpRequest, proxy: Proxy) -> None:
        self.disable(request, [proxy])

    @admin.display(description="Proxy", ordering="host")
    def address(self, proxy: Proxy) -> str:
        return str(proxy)

    @admin.display(description="Country", ordering="country_code", empty_value="—")
    def country(self, proxy: Proxy) -> str | None:
        return proxy.country_code or None

    @admin.display(description="Cost", ordering="monthly_cost", empty_value="—")
    def cost(self, proxy: Proxy) -> Decimal | None:
        return proxy.monthly_cost

    @admin.display(description="Domains", ordering="domain_count")
    def domains(self, proxy: Proxy) -> int:
        return int(getattr(proxy, "domain_count", 0))
