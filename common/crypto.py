"""Secrets at rest: an encrypted model field whose keys can be rotated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.db.models.query_utils import DeferredAttribute

from common.errors import Refused


class Undecryptable(Refused):
    """A stored secret cannot be read with any configured key."""

    code = "INVALID_STATE"


@dataclass(frozen=True)
class Unreadable:
    """What stands in a row for a secret that no key opens; it is kept as it is."""

    token: str
    reason: Undecryptable


@lru_cache(maxsize=4)
def _box(keys: tuple[str, ...]) -> MultiFernet:
    if not keys:
        raise ImproperlyConfigured("FIELD_ENCRYPTION_KEYS is empty: secrets cannot be stored")
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(text: str) -> str:
    return _box(tuple(settings.FIELD_ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    try:
        return _box(tuple(settings.FIELD_ENCRYPTION_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise Undecryptable(
            "no key in FIELD_ENCRYPTION_KEYS decrypts this secret: set it again, or bring its key back"
        ) from error


def reencrypt(token: str) -> str | None:
    """The same secret under the first key; None when it is that already."""
    keys = tuple(settings.FIELD_ENCRYPTION_KEYS)
    try:
        _box(keys[:1]).decrypt(token.encode())
    except InvalidToken:
        return encrypt(decrypt(token))
    return None


class Secret(DeferredAttribute):
    """One that cannot be read fails where it is used: its row can be shown, changed, deleted."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        value = super().__get__(instance, owner)
        if isinstance(value, Unreadable):
            raise value.reason
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Text that is ciphertext in the database and plain in Python; empty stays empty."""

    descriptor_class = Secret

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, Unreadable):
            return value.token
        return encrypt(value) if value else value

    def from_db_value(self, value: str | None, *_args: object) -> Any:
        try:
            return decrypt(value) if value else value
        except Undecryptable as error:
            return Unreadable(str(value), error)

    def pre_save(self, model_instance: models.Model, add: Any) -> Any:
        kept = model_instance.__dict__.get(self.attname)
        return kept if isinstance(kept, Unreadable) else super().pre_save(model_instance, add)
