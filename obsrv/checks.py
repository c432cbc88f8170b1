"""System checks: what must not wait until the first page or the first attack to be seen."""

from __future__ import annotations

from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string


@register("obsrv")
def check_consumers(**_kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for setting in ("PAGE_CONSUMERS", "FAILURE_CONSUMERS", "PAGE_KEEPERS", "JOB_CONSUMERS"):
        for kind, path in getattr(settings, setting).items():
            try:
                import_string(path)
            except ImportError as error:
                text = f"{setting}[{kind!r}] cannot be imported: {error}"
                found.append(
                    Error(text, hint="Name a function as package.module.name.", id="obsrv.E001")
                )
    return found


@register("obsrv")
def check_secrets(**_kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    try:
        settings.SECRET_KEY  # noqa: B018
    except ImproperlyConfigured:
        hint = "Set it to 50 random characters; the same for every process."
        found.append(Error("SECRET_KEY is empty.", hint=hint, id="obsrv.E002"))
    if not settings.FIELD_ENCRYPTION_KEYS or not all(map(_is_key, settings.FIELD_ENCRYPTION_KEYS)):
        hint = "Make one: python -c 'from cryptography.fernet import Fernet as F; print(F.generate_key().decode())'"
        text = "FIELD_ENCRYPTION_KEYS is empty or holds something that is no Fernet key."
        found.append(Error(text, hint=hint, id="obsrv.E003"))
    return found


@register("obsrv", deploy=True)
def check_openings(**_kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not settings.PRODUCTION:
        hint = "Set OBSRV_PRODUCTION=true."
        found.append(Warning("These are not production settings.", hint=hint, id="obsrv.W003"))
    if settings.WEBHOOK_ALLOW_HTTP:
        text = "WEBHOOK_ALLOW_HTTP lets webhooks travel unencrypted."
        found.append(Warning(text, hint="Unset it.", id="obsrv.W001"))
    if settings.EGRESS_ALLOWED_NETWORKS:
        text = "EGRESS_ALLOWED_NETWORKS lets clients reach private networks through crawls and webhooks."
        hint = "Keep it empty, or as narrow as it can be."
        found.append(Warning(text, hint=hint, id="obsrv.W002"))
    return found


def _is_key(text: str) -> bool:
    try:
        Fernet(text)
    except ValueError:
        return False
    return True
