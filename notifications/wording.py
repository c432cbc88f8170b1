"""Events in words for people: one message each, or many in a digest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from common.errors import Invalid
from notifications.catalogue import TYPES
from notifications.models import Channel, Event

ROOTS = ("id", "type", "created_at", "sequence", "title", "object", "previous", "change")
DIGEST_LINES = 50
VALUE_CHARS = 500
_SLOT = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


def checked_template(text: str, *, attr: str) -> str:
    """Slots such as ``{object.name}``; a misspelt one would be empty for ever."""
    for name in _SLOT.findall(text):
        if not _NAME.fullmatch(name) or name.split(".")[0] not in ROOTS:
            raise Invalid(f"{{{name}}}: a slot starts with one of {', '.join(ROOTS)}.", attr=attr)
    if "{" in _SLOT.sub("", text) or "}" in _SLOT.sub("", text):
        raise Invalid("A brace is open or closed without its partner.", attr=attr)
    return text


def message(channel: Channel, event: Event) -> tuple[str, str]:
    """Title and text of one event."""
    facts = _facts(event)
    title = _fill(channel.title_template, facts) or str(facts["title"])
    return title, _fill(channel.body_template, facts) or _default(facts)


def digest(channel: Channel, events: Sequence[Event]) -> tuple[str, str]:
    lines = [f"• {_line(_facts(event))}" for event in events[:DIGEST_LINES]]
    if len(events) > DIGEST_LINES:
        lines.append(f"… and {len(events) - DIGEST_LINES} more: GET /api/v1/events")
    return f"{len(events)} news for {channel.name}", "\n".join(lines)


def _facts(event: Event) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(event.body)
    data = body.pop("data", {})
    known = TYPES.get(event.type)
    name = str(data.get("object", {}).get("name") or "")
    what = event.type.partition(".")[2].replace("_", " ") or event.type
    title = f"{name}: {what}" if name else f"{event.type.partition('.')[0]}: {what}"
    return {**body, **data, "title": title, "about": known.description if known else ""}


def _fill(template: str, facts: dict[str, Any]) -> str:
    return _SLOT.sub(lambda slot: _value(facts, slot[1]), template)


def _value(facts: dict[str, Any], path: str) -> str:
    found: Any = facts
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else str(found)[:VALUE_CHARS]


def _line(facts: dict[str, Any]) -> str:
    return " ".join(filter(None, (str(facts["title"]), _movement(facts))))


def _movement(facts: dict[str, Any]) -> str:
    old, new = _value(facts, "change.old"), _value(facts, "change.new")
    if not new:
        return _value(facts, "change.reason")
    pct = _value(facts, "change.pct")
    return f"{old or '?'} → {new} {_value(facts, 'object.currency')}".strip() + (
        f" ({pct} %)" if pct else ""
    )


def _default(facts: dict[str, Any]) -> str:
    figures = [
        f"{name.replace('_', ' ')}: {value}"
        for name, value in facts.get("object", {}).items()
        if isinstance(value, (int, str))
        and not name.endswith("id")
        and facts["type"] == "summary.daily"
    ]
    lines = (_movement(facts), str(facts["about"]), _value(facts, "object.url"), *figures)
    return "\n".join(filter(None, lines))
