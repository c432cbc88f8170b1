"""What every API view is: keyed, scoped, rate limited, strict about its query, idempotent.

A tenant's resource is a :class:`ClientViewSet` with ``queryset`` (whose class has
``for_client``), serializers and the DRF mixins it needs; see docs/concepts.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from common.drf import idempotency
from common.drf.pagination import CursorPages
from common.drf.permissions import HasScope, OperatorOnly, scope_admin
from common.drf.principals import Principal
from common.drf.ratelimit import KeyRate
from common.errors import Invalid


class JsonOnly(DefaultContentNegotiation):
    # ``?format=`` would be a parameter that no schema documents.
    settings = SimpleNamespace(URL_FORMAT_OVERRIDE=None)  # type: ignore[assignment]


class Door(APIView):
    """The parts shared by plain views and view sets."""

    throttle_classes = [KeyRate]
    content_negotiation_class = JsonOnly
    # By action, or by method in plain views: a serializer for the query; see ``query``.
    query_serializers: ClassVar[Mapping[str, type[BaseSerializer[Any]]]] = {}
    _claim: idempotency.Claim | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if self._claim is not None:
            self._claim.finish(cast(Any, response).render())
        return response

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        # Before permissions: refusals are counted too, and carry the headers.
        super().check_throttles(request)

    def check_throttles(self, request: Request) -> None:
        """Done right after authentication."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._check_query(request)
        key = idempotency.key_of(request._request)
        if key is not None and request.auth is not None:
            mark = idempotency.fingerprint(request._request)
            self._claim = idempotency.begin(self.principal.owner_id, key, mark)

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, idempotency.Replay):
            return exc.response
        response = super().handle_exception(exc)
        if isinstance(exc, idempotency.InFlight):
            response["Retry-After"] = str(exc.retry_after_seconds)
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        rate = getattr(getattr(request, "_request", None), "rate", None)
        for name, value in rate.headers().items() if rate else ():
            final[name] = value
        return final

    @property
    def principal(self) -> Principal:
        return cast(Principal, self.request.user)

    @property
    def query(self) -> dict[str, Any]:
        """The validated query parameters, where ``query_serializers`` names a serializer."""
        serializer_class = self.query_serializer_class()
        if serializer_class is None:
            return {}
        known = set(serializer_class().fields)  # type: ignore[attr-defined]
        given = {name: text for name, text in self.request.query_params.items() if name in known}
        serializer = serializer_class(data=given)
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)

    def query_serializer_class(self) -> type[BaseSerializer[Any]] | None:
        name = getattr(self, "action", None) or self.request.method or ""
        return self.query_serializers.get(name)

    def query_parameters(self) -> set[str]:
        """Every name this operation understands."""
        serializer_class = self.query_serializer_class()
        return set(serializer_class().fields) if serializer_class else set()  # type: ignore[attr-defined]

    def _check_query(self, request: Request) -> None:
        known = self.query_parameters()
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            text = f"Unknown query parameter; known are: {', '.join(sorted(known)) or 'none'}."
            errors = {_printable(name): [text] for name in unknown}
            raise ValidationError(errors, code="unknown")
        for name, value in request.query_params.items():
            if "\0" in value:
                raise ValidationError({name: ["NUL characters are not allowed."]}, code="nul")


def _printable(name: str) -> str:
    return name.replace("\0", "�")[:100] or "?"


class ApiView(Door):
    """One resource without a table behind it."""


class ApiViewSet(Door, GenericViewSet[Any]):
    """A resource with a queryset; ``serializer_classes`` names a serializer per action."""

    serializer_classes: ClassVar[Mapping[str, type[BaseSerializer[Any]]]] = {}
    ordering: ClassVar[tuple[str, ...]] = ()
    ordering_fields: ClassVar[tuple[str, ...]] = ()
    # Further lists of a view set: ``@action(detail=True, paged=True)``.
    paged = False

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return self.serializer_classes.get(self.action) or super().get_serializer_class()

    def valid_data(self) -> dict[str, Any]:
        """The body, validated by the serializer of this action."""
        serializer = self.get_serializer(
            data=self.request.data, partial=self.action == "partial_update"
        )
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)

    @property
    def is_list(self) -> bool:
        return self.action == "list" or self.paged

    def query_parameters(self) -> set[str]:
        known = super().query_parameters()
        if self.is_list:
            known |= self._filter_names()
            if isinstance(self.paginator, CursorPages):
                known |= self.paginator.parameters(self)
        return known

    def _filter_names(self) -> set[str]:
        names: set[str] = set()
        for backend in self.filter_backends:
            find = getattr(backend(), "get_filterset_class", None)
            filterset = find(self, self.get_queryset()) if find else None
            for name, one in getattr(filterset, "base_filters", {}).items():
                suffixes = getattr(one.field.widget, "suffixes", None) or [""]
                names |= {f"{name}_{suffix}" if suffix else name for suffix in suffixes}
        return names


class ClientViewSet(ApiViewSet):
    """A tenant's rows: its keys see their own, operator keys all or those of ``?client=``."""

    def query_parameters(self) -> set[str]:
        return super().query_parameters() | {"client"}

    @cached_property
    def client(self) -> Any:
        """The client acted for; None for an operator key that names none."""
        named = self.request.query_params.get("client")
        return self.principal.client_for(named)

    @property
    def required_client(self) -> Any:
        """For writes that must belong to somebody."""
        client = self.client
        if client is None:
            raise Invalid("An operator key must name the client: ?client=<id>.", attr="client")
        return client

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        return rows if getattr(self, "swagger_fake_view", False) else self.owned(rows)

    def owned(self, rows: Any) -> Any:
        """Those of the rows that the key may see; also for the parents of nested lists."""
        client = self.client
        return rows if client is None else rows.for_client(client)


class OperatorViewSet(ApiViewSet):
    """Installation-wide resources; a client's key is told so, whatever its scope."""

    permission_classes = [HasScope, OperatorOnly]
    required_scopes = scope_admin
