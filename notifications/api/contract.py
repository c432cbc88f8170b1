"""The events in the OpenAPI document: its ``webhooks:`` section, made from the catalogue."""

from __future__ import annotations

from typing import Any

from notifications.catalogue import TYPES, EventType

SIGNED = [
    ("X-Obsrv-Signature", "`t=<unix time>,v1=<HMAC>`, one `v1` for each live secret."),
    ("webhook-id", "The id of the event, the same in every try: drop what you have seen."),
    ("webhook-timestamp", "When this try was signed."),
    ("webhook-signature", "The signature as Standard Webhooks has it."),
]


def add_webhooks(result: dict[str, Any], **_options: Any) -> dict[str, Any]:
    result["webhooks"] = {name: {"post": _operation(kind)} for name, kind in TYPES.items()}
    return result


def _operation(kind: EventType) -> dict[str, Any]:
    schema = {key: value for key, value in kind.schema.items() if key != "$schema"}
    return {
        "operationId": "event_" + kind.name.replace(".", "_"),
        "summary": kind.description.rstrip("."),
        "tags": ["Events"],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": text,
                "schema": {"type": "string"},
            }
            for name, text in SIGNED
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": kind.example}},
        },
        "responses": {
            "2XX": {"description": "Taken. Anything else, or nothing in time, is tried again."},
            "410": {"description": "Never again: the endpoint is switched off."},
            "429": {"description": "Later: `Retry-After` is obeyed."},
        },
    }
