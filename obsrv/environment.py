"""Environment variables, with one clear sentence about each that makes no sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

YES = ("true", "on", "ok", "y", "yes", "1")
NO = ("false", "off", "n", "no", "0", "")
WANTED: dict[Any, str] = {int: "a whole number", float: "a number"}


class Environment(environ.FileAwareEnv):  # type: ignore[misc]
    def get_value(self, var: str, cast: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get_value(var, cast, *args, **kwargs)
        except ValueError as error:
            each = cast[0] if isinstance(cast, list) else cast
            many = " each part of a list with commas," if isinstance(cast, list) else ""
            wanted = WANTED.get(each, "of another form")
            raise _refusal(var, f"{wanted},{many}", self.str(var)) from error

    def bool(self, var: str, default: Any = environ.Env.NOTSET) -> bool:
        given = str(self.get_value(var, cast=str, default=default)).strip().lower()
        if given not in YES + NO:
            raise _refusal(var, "true or false,", given)
        return given in YES

    def int_between(self, var: str, low: int, high: int, *, default: int) -> int:
        value: int = self.int(var, default=default)
        if not low <= value <= high:
            raise _refusal(var, f"a whole number from {low} to {high},", str(value))
        return value

    def address(self, var: str, *schemes: str) -> str:
        """A URL, or empty."""
        value: str = self.str(var, default="")
        if value and value.partition("://")[0] not in schemes:
            raise _refusal(var, f"a URL that starts with {schemes[0]}://,", value)
        return value

    def pauses(self, var: str, named: Mapping[str, list[int]], *, default: str) -> list[int]:
        """Seconds separated by commas, or a name for such a list."""
        text: str = self.str(var, default="").strip() or default
        if text in named:
            return list(named[text])
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
            names = ", ".join(named)
            raise _refusal(var, f"one of {names}, or seconds separated by commas,", text)
        return [int(part) for part in parts]

    def one_of(self, var: str, choices: Sequence[str], *, default: str) -> str:
        value: str = self.str(var, default=default)
        if value not in choices:
            raise _refusal(var, f"one of {', '.join(choices)},", value)
        return value


def _refusal(var: str, wanted: str, value: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{var} must be {wanted} not {value!r}.")
