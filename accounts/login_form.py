"""The login page of the console."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from unfold.forms import AuthenticationForm

from accounts import logins
from common.errors import LimitReached


class LoginForm(AuthenticationForm):  # type: ignore[misc]
    """As unfold's, with an end to guessing."""

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        if not username or not self.cleaned_data.get("password"):
            return dict(super().clean())
        address = str(self.request.META.get("REMOTE_ADDR", ""))
        try:
            logins.count_try(username, address)
            data = self._checked(username, address)
        except LimitReached as refused:
            raise ValidationError(refused.detail) from refused
        logins.forget(username, address)
        return data

    def _checked(self, username: str, address: str) -> dict[str, Any]:
        try:
            return dict(super().clean())
        except ValidationError:
            logins.refuse_if_last(username, address)
            raise
