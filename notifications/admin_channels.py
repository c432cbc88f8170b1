from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.admin import actor_of
from common.console import do_each
from common.errors import Refused
from notifications import channels, endpoints, messengers, wording
from notifications.models import Channel

T = TypeVar("T")


def or_form_error(check: Callable[[Any], T], value: Any) -> T:
    try:
        return check(value)
    except Refused as refusal:
        raise forms.ValidationError(refusal.detail) from refusal


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    address = forms.CharField(
        label="URL",
        required=False,
        max_length=messengers.URL_CHARS,
        help_text="An Apprise URL. Never shown again; empty leaves it as it is.",
    )

    class Meta:
        model = Channel
        fields = [
            "client",
            "name",
            "events",
            "digest",
            "quiet_from",
            "quiet_until",
            "title_template",
            "body_template",
            "is_active",
        ]

    def clean_address(self) -> str:
        given: str = self.cleaned_data["address"]
        if not given and self.instance._state.adding:
            raise forms.ValidationError("Where shall it send?")
        return or_form_error(messengers.checked_url, given) if given else ""

    def clean_events(self) -> list[str]:
        return or_form_error(endpoints.checked_events, self.cleaned_data["events"])

    def clean_title_template(self) -> str:
        return self._checked_template("title_template")

    def clean_body_template(self) -> str:
        return self._checked_template("body_template")

    def _checked_template(self, name: str) -> str:
        return or_form_error(partial(wording.checked_template, attr=name), self.cleaned_data[name])


@admin.register(Channel)
class ChannelAdmin(ModelAdmin):  # type: ignore[misc]
    form = ChannelForm
    empty_text = "No channel yet. Add one to tell people by mail or messenger."
    list_display = [
        "name",
        "client",
        "service",
        "digest",
        "is_active",
        "last_sent_at",
        "last_error",
    ]
    list_filter = ["is_active", "digest"]
    list_select_related = ["client"]
    search_fields = ["name", "client__name"]
    show_full_result_count = False
    autocomplete_fields = ["client"]
    actions = ["send_test"]
    fields = [
        "client",
        "name",
        "address",
        "events",
        "digest",
        ("quiet_from", "quiet_until"),
        "title_template",
        "body_template",
        "is_active",
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["client"] if obj else []

    @admin.display(description="Service")
    def service(self, channel: Channel) -> str:
        return channels.service_of(channel)

    def save_model(self, request: HttpRequest, obj: Channel, form: Any, change: Any) -> None:
        names = [name for name in ChannelForm.Meta.fields if name != "client"]
        fields: Any = {name: form.cleaned_data[name] for name in names}
        if form.cleaned_data["address"]:
            fields["url"] = form.cleaned_data["address"]
        if change:
            channels.update_channel(obj, actor=actor_of(request), **fields)
            return
        obj.pk = channels.create_channel(obj.client, actor=actor_of(request), **fields).pk

    def delete_model(self, request: HttpRequest, obj: Channel) -> None:
        channels.delete_channel(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Channel]) -> None:
        for channel in queryset:
            channels.delete_channel(channel, actor=actor_of(request))

    @admin.action(description="Send a test message", permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[Channel]) -> None:
        job = partial(channels.send_test, actor=actor_of(request))
        do_each(request, queryset, job, "tested")
