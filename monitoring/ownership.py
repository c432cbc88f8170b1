"""Whose a website is, for the layers below that know its id only."""

from __future__ import annotations

import uuid

from monitoring.models import Website


def owns_website(client_id: uuid.UUID, website_id: uuid.UUID) -> bool:
    return Website.objects.filter(pk=website_id, client_id=client_id).exists()
