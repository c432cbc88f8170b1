from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from common.drf.principals import allows, key_of


def needed_scope(view: Any, method: str) -> str:
    """``required_scopes`` of the view by action or by method; else read to see, write to change."""
    declared = getattr(view, "required_scopes", {})
    default = "read" if method in SAFE_METHODS else "write"
    return str(declared.get(getattr(view, "action", None)) or declared.get(method, default))


class HasScope(BasePermission):
    message = ""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = key_of(request)
        if key is None:
            return False
        needed = needed_scope(view, request.method or "GET")
        self.message = f"This needs a key with the scope {needed}."
        return allows(key.scopes, needed)


class OperatorOnly(BasePermission):
    message = "This needs an operator key with the scope admin."

    def has_permission(self, request: Request, view: Any) -> bool:
        key = key_of(request)
        return key is not None and key.client_id is None and allows(key.scopes, "admin")


# For ``required_scopes`` of views where even reading needs admin.
scope_admin = dict.fromkeys(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"), "admin")
