"""Secrets at rest: an encrypted model field whose keys can be rotated."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


class Undecryptable(Exception):
    """A stored secret cannot be read with any configured key."""


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
        raise Undecryptable("no key in FIELD_ENCRYPTION_KEYS decrypts this secret") from error


def reencrypt(token: str) -> str | None:
    """The same secret under the first key; None when it is that already."""
    keys = tuple(settings.FIELD_ENCRYPTION_KEYS)
    try:
        _box(keys[:1]).decrypt(token.encode())
    except InvalidToken:
        return encrypt(decrypt(token))
    return None


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Text that is ciphertext in the database and plain in Python; empty stays empty."""

    def get_prep_value(self, value: Any) -> Any:
        return encrypt(value) if value else value

    def from_db_value(self, value: str | None, *_args: object) -> str | None:
        return decrypt(value) if value else value
