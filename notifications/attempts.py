"""What a try looked like on the wire, put together from what was kept of it."""

from __future__ import annotations

from notifications.headers import HIDDEN
from notifications.models import DeliveryAttempt
from notifications.sending import request_headers


def sent_headers(attempt: DeliveryAttempt) -> dict[str, str]:
    """The headers as sent; the values of the receiver's own ones stay hidden."""
    event = attempt.delivery.event
    return {
        **dict.fromkeys(attempt.own_headers, HIDDEN),
        **request_headers(
            delivery_id=attempt.delivery_id,
            event_id=event.public_id,
            event_type=event.type,
            signature=attempt.signature_header,
        ),
        "webhook-timestamp": str(int(attempt.attempted_at.timestamp())),
        "webhook-signature": attempt.standard_signature,
    }
