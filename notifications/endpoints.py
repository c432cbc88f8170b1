"""Where clients hear news: made, changed, tested, switched off and deleted, with an audit entry."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, Unpack
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import audit
from accounts.audit import Actor
from accounts.models import Client
from accounts.webhook_secrets import new_secret
from common.crypto import Undecryptable
from common.errors import Conflict, Invalid, InvalidState, LimitReached, UrlInvalid
from common.http import check_target
from common.ids import uuid7
from notifications import headers as own_headers
from notifications.catalogue import is_pattern
from notifications.events import EventDraft, lock_feeds, publish
from notifications.models import Delivery, WebhookEndpoint

MAX_ENDPOINTS = 100
MAX_TIMEOUT_SECONDS = 30
MAX_GRACE_SECONDS = 24 * 3600
MAX_THROTTLE = 1000
URL_CHARS = 2048
ALL_EVENTS = ("*",)


class Changes(TypedDict):
    """What of an endpoint can be changed."""

    url: NotRequired[str]
    events: NotRequired[Sequence[str]]
    description: NotRequired[str]
    is_active: NotRequired[bool]
    timeout_seconds: NotRequired[int]
    throttle_per_second: NotRequired[int | None]
    headers: NotRequired[Mapping[str, str]]


def create_endpoint(
    client: Client,
    *,
    actor: Actor,
    website_id: uuid.UUID | None = None,
    own_secret: bool = True,
    **wanted: Unpack[Changes],
) -> WebhookEndpoint:
    """An endpoint for the whole client or one website, with a secret of its own
    (``secret_current``) unless the client's shall sign."""
    checked = _checked({"events": ALL_EVENTS, "timeout_seconds": _default_timeout(), **wanted})
    endpoint = WebhookEndpoint(
        client=client,
        website_id=checked_website(client, website_id),
        secret_current=new_secret() if own_secret else "",
        **checked,
    )
    return _insert(endpoint, actor)


def update_endpoint(
    endpoint: WebhookEndpoint, *, actor: Actor, **changes: Unpack[Changes]
) -> WebhookEndpoint:
    """Change what is named; switching on again forgets why it was off."""
    return _change(endpoint, _checked(changes), actor)


@transaction.atomic
def _change(endpoint: WebhookEndpoint, checked: dict[str, Any], actor: Actor) -> WebhookEndpoint:
    endpoint = WebhookEndpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    before = _facts(endpoint)
    for name, value in checked.items():
        setattr(endpoint, name, value)
    if checked.get("is_active"):
        endpoint.disabled_reason = ""
        endpoint.failing_since = None
    if checked.keys() & {"is_active", "url", "headers"}:
        # It may well answer now.
        endpoint.failures_in_row, endpoint.resting_until = 0, None
    _save_changes(endpoint, before, actor)
    return endpoint


def delete_endpoint(endpoint: WebhookEndpoint, *, actor: Actor) -> None:
    """With everything it was ever sent; the events stay."""
    with transaction.atomic():
        # No event may be written for an endpoint that is about to go.
        lock_feeds([endpoint.client_id])
        _delete_deliveries(endpoint.pk)
        audit.record(
            actor, "delete", endpoint, client_id=endpoint.client_id, before=_facts(endpoint)
        )
        endpoint.delete()


def set_website_endpoint(
    client: Client, website_id: uuid.UUID, url: str | None, actor: Actor
) -> WebhookEndpoint | None:
    """The endpoint that hears about one website only, signed with the client's secret.

    ``url`` is what ``checked_url`` answered: that may ask the DNS, and callers hold locks here.
    """
    endpoint = client.webhook_endpoints.filter(website_id=website_id).first()
    if not url:
        if endpoint:
            delete_endpoint(endpoint, actor=actor)
        return None
    if endpoint is None:
        return _insert(
            WebhookEndpoint(
                client=client,
                url=url,
                events=list(ALL_EVENTS),
                website_id=website_id,
                timeout_seconds=_default_timeout(),
            ),
            actor,
        )
    if endpoint.url == url:
        return endpoint
    return _change(endpoint, {"url": url, "is_active": True}, actor)


def website_endpoint_urls(website_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    rows = WebhookEndpoint.objects.filter(website_id__in=list(website_ids))
    return {pk: url for pk, url in rows.values_list("website_id", "url") if pk is not None}


def disable_endpoint(endpoint_id: uuid.UUID, *, reason: str, url: str | None = None) -> None:
    """Switch off what keeps failing, and tell the client through its other endpoints; with
    ``url`` only while that is its address: what an old one answers says nothing of a new one."""
    still = Q(pk=endpoint_id, is_active=True) & (Q() if url is None else Q(url=url))
    with transaction.atomic():
        # Without its secrets: it may be failing because they cannot be read.
        rows = WebhookEndpoint.objects.only("client_id", "url", "website_id")
        endpoint = rows.filter(still).first()
        if endpoint is None:
            return
        # The feed before the endpoint, as everywhere: two who lock both must not wait for ever.
        lock_feeds([endpoint.client_id])
        switched = WebhookEndpoint.objects.filter(still)
        if not switched.update(is_active=False, disabled_reason=reason, updated_at=timezone.now()):
            return
        after = {"is_active": False, "disabled_reason": reason}
        audit.record(audit.SYSTEM, "disable", endpoint, client_id=endpoint.client_id, after=after)
        publish([_disabled_event(endpoint, reason)])


def rotate_secret(endpoint: WebhookEndpoint, grace_seconds: int, actor: Actor) -> str:
    """The new secret; what signed until now goes on signing for the grace period."""
    if not 0 <= grace_seconds <= MAX_GRACE_SECONDS:
        raise Invalid(f"Give 0 to {MAX_GRACE_SECONDS} seconds.", attr="grace_seconds")
    with transaction.atomic():
        endpoint = (
            WebhookEndpoint.objects.select_for_update(of=("self",), no_key=True)
            .select_related("client")
            .get(pk=endpoint.pk)
        )
        endpoint.secret_previous = _signed_until_now(endpoint) if grace_seconds else ""
        endpoint.secret_current = secret = new_secret()
        endpoint.secret_rotation_expires_at = timezone.now() + dt.timedelta(seconds=grace_seconds)
        endpoint.save()
        after = {"grace_seconds": grace_seconds}
        audit.record(actor, "rotate_secret", endpoint, client_id=endpoint.client_id, after=after)
    return secret


def live_secrets(endpoint: WebhookEndpoint) -> list[str]:
    """The secrets that sign right now, newest first: its own, else its client's."""
    if not endpoint.secret_current:
        return endpoint.client.live_webhook_secrets()
    expires = endpoint.secret_rotation_expires_at
    if endpoint.secret_previous and expires and expires > timezone.now():
        return [endpoint.secret_current, endpoint.secret_previous]
    return [endpoint.secret_current]


def _signed_until_now(endpoint: WebhookEndpoint) -> str:
    try:
        return live_secrets(endpoint)[0]
    except Undecryptable:
        # Nothing was signed with what cannot be read.
        return ""


def has_own_secret(endpoint: WebhookEndpoint) -> bool:
    try:
        return bool(endpoint.secret_current)
    except Undecryptable:
        return True


def header_names(endpoint: WebhookEndpoint) -> list[str]:
    """The values are secrets: a digest would be enough to guess a short one."""
    try:
        return sorted(own_headers.unpack(endpoint.headers))
    except Undecryptable:
        return ["unreadable: set them again"]


def send_test(endpoint: WebhookEndpoint, actor: Actor) -> Delivery:
    """A ``webhook.test`` event for this endpoint alone, whatever it listens to."""
    refuse_inactive(endpoint)
    draft = EventDraft(
        client_id=endpoint.client_id,
        type="webhook.test",
        cause=uuid7(),
        data={"object": _public(endpoint)},
        occurred_at=timezone.now(),
        endpoint_id=endpoint.pk,
    )
    with transaction.atomic():
        publish([draft])
        ask_now(endpoint)
        audit.record(actor, "test", endpoint, client_id=endpoint.client_id)
        delivery = Delivery.objects.filter(event_id=draft.id, endpoint=endpoint).first()
        if delivery is None:
            raise InvalidState("The endpoint was switched off meanwhile: enable it first.")
    return delivery


def _insert(endpoint: WebhookEndpoint, actor: Actor) -> WebhookEndpoint:
    with transaction.atomic():
        # One after another for each client, so that the count and the website stay true.
        lock_feeds([endpoint.client_id])
        _refuse_one_too_many(endpoint)
        endpoint.save(force_insert=True)
        audit.record(
            actor, "create", endpoint, client_id=endpoint.client_id, after=_facts(endpoint)
        )
    return endpoint


def _refuse_one_too_many(endpoint: WebhookEndpoint) -> None:
    """One for a website; for the client as a whole, as many as the limit says."""
    alike = WebhookEndpoint.objects.filter(
        client_id=endpoint.client_id, website_id=endpoint.website_id
    )
    if endpoint.website_id and alike.exists():
        raise Conflict("This website has an endpoint already: change that one.", attr="website_id")
    if not endpoint.website_id and alike.count() >= MAX_ENDPOINTS:
        raise LimitReached(f"A client has at most {MAX_ENDPOINTS} endpoints: delete one first.")


def _save_changes(endpoint: WebhookEndpoint, before: dict[str, Any], actor: Actor) -> None:
    after = _facts(endpoint)
    changed = [name for name in after if after[name] != before[name]]
    endpoint.save()
    if not changed:
        return
    audit.record(
        actor,
        "update",
        endpoint,
        client_id=endpoint.client_id,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )


def _delete_deliveries(endpoint_id: uuid.UUID) -> None:
    # Not by the ORM's cascade: it would load every row of a busy endpoint into memory.
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM notifications_deliveryattempt a USING notifications_delivery d"
            " WHERE a.delivery_id = d.id AND d.endpoint_id = %s",
            [endpoint_id],
        )
        cursor.execute("DELETE FROM notifications_delivery WHERE endpoint_id = %s", [endpoint_id])


def refuse_inactive(endpoint: WebhookEndpoint) -> None:
    if not endpoint.is_active:
        raise InvalidState("The endpoint is switched off: enable it first (is_active: true).")


def ask_now(endpoint: WebhookEndpoint) -> None:
    """Who asks for a delivery does not want to wait for the end of a rest."""
    resting = WebhookEndpoint.objects.filter(pk=endpoint.pk, resting_until__gt=timezone.now())
    resting.update(resting_until=None)


def _disabled_event(endpoint: WebhookEndpoint, reason: str) -> EventDraft:
    return EventDraft(
        client_id=endpoint.client_id,
        type="webhook.disabled",
        cause=uuid7(),
        data={"object": _public(endpoint), "change": {"reason": reason}},
        occurred_at=timezone.now(),
        website_id=endpoint.website_id,
    )


def _public(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {"id": endpoint.pk, "url": endpoint.url}


def _facts(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "events": list(endpoint.events),
        "website_id": str(endpoint.website_id) if endpoint.website_id else None,
        "description": endpoint.description,
        "is_active": endpoint.is_active,
        "timeout_seconds": endpoint.timeout_seconds,
        "throttle_per_second": endpoint.throttle_per_second,
        "headers": header_names(endpoint),
    }


def _checked(changes: Changes) -> dict[str, Any]:
    checked: dict[str, Any] = dict(changes)
    if "url" in changes:
        checked["url"] = checked_url(changes["url"])
    if "events" in changes:
        checked["events"] = checked_events(changes["events"])
    if "timeout_seconds" in changes:
        checked["timeout_seconds"] = checked_timeout(changes["timeout_seconds"])
    if "throttle_per_second" in changes:
        checked["throttle_per_second"] = checked_throttle(changes["throttle_per_second"])
    if "headers" in changes:
        checked["headers"] = own_headers.pack(changes["headers"])
    return checked


def checked_url(url: str, *, attr: str = "url") -> str:
    if len(url) > URL_CHARS:
        raise UrlInvalid(f"At most {URL_CHARS} characters.", attr=attr)
    if not settings.WEBHOOK_ALLOW_HTTP and urlsplit(url).scheme.lower() != "https":
        raise UrlInvalid("Use an https:// address: news must not travel in the open.", attr=attr)
    return check_target(url)


def checked_events(patterns: Iterable[str]) -> list[str]:
    events = list(dict.fromkeys(patterns))
    unknown = [pattern for pattern in events if not is_pattern(pattern)]
    if unknown or not events:
        raise Invalid(
            "Name event types, groups such as product.* or *; see GET /event-types.", attr="events"
        )
    return events


def checked_timeout(seconds: int) -> int:
    if not 1 <= seconds <= MAX_TIMEOUT_SECONDS:
        raise Invalid(f"Give 1 to {MAX_TIMEOUT_SECONDS} seconds.", attr="timeout_seconds")
    return seconds


def checked_throttle(per_second: int | None) -> int | None:
    if per_second is not None and not 1 <= per_second <= MAX_THROTTLE:
        raise Invalid(f"Give 1 to {MAX_THROTTLE}, or nothing.", attr="throttle_per_second")
    return per_second


def checked_website(client: Client, website_id: uuid.UUID | None) -> uuid.UUID | None:
    """Websites are known above: who knows is named in the settings."""
    if website_id and not import_string(settings.WEBSITE_OWNERSHIP)(client.pk, website_id):
        raise Invalid("There is no such website.", attr="website_id")
    return website_id


def _default_timeout() -> int:
    return min(max(1, int(settings.WEBHOOK_TIMEOUT_SECONDS)), MAX_TIMEOUT_SECONDS)
