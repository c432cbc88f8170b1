"""The OpenAPI document: what drf-spectacular finds, plus what every operation of ours has."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.permissions import AllowAny

from common.drf import problems
from common.drf.conditional import IF_MATCH, IF_NONE_MATCH
from common.drf.permissions import OperatorOnly
from common.drf.serializers import ProblemSerializer, Strict
from common.drf.views import ClientViewSet

ALWAYS = {
    "400": "The request is not valid.",
    "406": "Only JSON is spoken.",
    "500": "Our fault.",
    "503": "A service is away; see Retry-After.",
}
KEYED = {
    "401": "A live API key is needed.",
    "403": "The key may not do this.",
    "429": "Too many requests; see Retry-After.",
}
WITH_ID = {"404": "No such object, or not yours."}
WRITING = {"404": "No such object, or not yours.", "409": "The state does not allow this."}
IF_UNCHANGED = {"412": "It was changed since it was read."}
WITH_BODY = {"413": "The body is too large.", "415": "The body is not JSON."}

IDEMPOTENCY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="Repeating the request with the same key within 24 hours answers the same.",
)
CLIENT = OpenApiParameter(
    "client",
    OpenApiTypes.UUID,
    OpenApiParameter.QUERY,
    description="Operator keys: the client to act for.",
)
VERBS = {"list": "List", "retrieve": "Show", "create": "Create"}
VERBS |= {"partial_update": "Change", "update": "Replace", "destroy": "Delete"}


class Schema(AutoSchema):
    def get_summary(self) -> str:
        """The first line of the method's docstring, else made from the path."""
        method = getattr(self.view, self._action() or self.method.lower(), None)
        if text := (getattr(method, "__doc__", None) or "").strip():
            return str(text.splitlines()[0].rstrip("."))
        nouns = [part.replace("api-", "API ").replace("-", " ") for part in self._tokenize_path()]
        verb = VERBS.get(self._action() or "", nouns[-1].capitalize() if nouns else "")
        noun = nouns[0] if nouns else "root"
        one = noun if self._action() in (None, "list") else noun.removesuffix("s")
        return f"{verb} {one}".strip()

    def get_description(self) -> str:  # type: ignore[override]
        text = str(super().get_description() or "")
        if not any(isinstance(one, OperatorOnly) for one in self.view.get_permissions()):
            return text
        return "\n\n".join(filter(None, [text, "Needs an operator key."]))

    def get_tags(self) -> list[str]:
        """``tag`` of the view, else the first part of the path."""
        declared = getattr(self.view, "tag", None)
        parts = self._tokenize_path()
        return [declared or (parts[0].replace("-", " ").capitalize() if parts else "API")]

    def get_auth(self) -> list[dict[str, Any]]:
        """Either header will do; drf-spectacular would ask for both."""
        return [{name: scopes} for one in super().get_auth() for name, scopes in one.items()]

    def get_override_parameters(self) -> list[Any]:
        found: list[Any] = list(super().get_override_parameters())
        name = self._action() or self.method
        query = getattr(self.view, "query_serializers", {}).get(name)
        if query is not None:
            found.append(query)
        if isinstance(self.view, ClientViewSet):
            found.append(CLIENT)
        if self.method == "POST" and self._is_keyed():
            found.append(IDEMPOTENCY)
        return found

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        if IF_NONE_MATCH in self.get_override_parameters():
            responses["304"] = {"description": "It is still what was read."}
        for status, text in sorted(self._failures().items()):
            if status not in responses:
                documented = OpenApiResponse(ProblemSerializer, description=text)
                responses[status] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    documented, status, [problems.CONTENT_TYPE], direction
                )
        return responses

    def _failures(self) -> dict[str, str]:
        found = dict(ALWAYS)
        if self._is_keyed():
            found |= KEYED
        if "{" in self.path:
            found |= WITH_ID
        if self.method != "GET":
            found |= WRITING | WITH_BODY
        if IF_MATCH in self.get_override_parameters():
            found |= IF_UNCHANGED
        return found

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        mapped: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction == "request" and isinstance(serializer, Strict):
            mapped["additionalProperties"] = False
        return mapped

    def _resolve_path_parameters(self, variables: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = super()._resolve_path_parameters(variables)  # type: ignore[no-untyped-call]
        for parameter in found:
            # The generated sentence ("A UUID string identifying this …") says nothing new.
            if re.match(r"A .* identifying this", parameter.get("description", "")):
                del parameter["description"]
        return found

    def _action(self) -> str | None:
        return getattr(self.view, "action", None)

    def _is_keyed(self) -> bool:
        return not any(isinstance(one, AllowAny) for one in self.view.get_permissions())
