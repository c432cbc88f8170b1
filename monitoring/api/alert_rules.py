"""When a client wants to hear of a website or of one of its products."""

from __future__ import annotations

import uuid
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf.serializers import StrictSerializer
from common.drf.views import ClientViewSet
from monitoring import alert_rules
from monitoring.api.serializers import Amount
from monitoring.models import AlertRule, Product, StockStatus, Website
from monitoring.models.alerts import LONGEST_REARM_MINUTES

STEP = OpenApiExample(
    "Drops of 5 % or more, at most once a day",
    {"kind": "percent", "value": "5", "direction": "down", "rearm_minutes": 1440},
    request_only=True,
)
TARGET = OpenApiExample(
    "A target price, confirmed by a second look",
    {"name": "Buy", "kind": "target_below", "value": "79.90", "confirm": True},
    request_only=True,
)
QUIETER = OpenApiExample("Only once a week", {"rearm_minutes": 10080}, request_only=True)
STOCK = OpenApiExample(
    "Back in stock", {"kind": "stock", "stock_to": ["in_stock"]}, request_only=True
)


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    website_id = serializers.UUIDField(read_only=True)
    product_id = serializers.UUIDField(
        read_only=True, allow_null=True, help_text="Null: all products of the website."
    )
    value = Amount(allow_null=True)
    stock_from = serializers.ListField(child=serializers.CharField(), read_only=True)
    stock_to = serializers.ListField(child=serializers.CharField(), read_only=True)
    rearm_minutes = serializers.IntegerField(read_only=True)

    class Meta:
        model = AlertRule
        fields = [
            "id",
            "website_id",
            "product_id",
            *alert_rules.COLUMNS,
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class AlertRuleChangeSerializer(StrictSerializer):
    name = serializers.CharField(max_length=100, required=False, allow_blank=True)
    value = serializers.DecimalField(
        max_digits=14,
        decimal_places=4,
        min_value=Decimal("0.0001"),
        required=False,
        allow_null=True,
        help_text="Percent, amount or target price, by kind.",
    )
    direction = serializers.ChoiceField(choices=AlertRule.Direction.choices, required=False)
    stock_from = serializers.ListField(
        child=serializers.ChoiceField(choices=StockStatus.choices),
        max_length=7,
        required=False,
        help_text="Only from one of these; empty: from any.",
    )
    stock_to = serializers.ListField(
        child=serializers.ChoiceField(choices=StockStatus.choices),
        max_length=7,
        required=False,
        help_text="Only to one of these; empty: to any.",
    )
    rearm_minutes = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_REARM_MINUTES,
        required=False,
        help_text="How long the rule rests for a product after it was told.",
    )
    confirm = serializers.BooleanField(
        required=False, help_text="Tell only what a second look confirms."
    )
    is_active = serializers.BooleanField(required=False)


class AlertRuleInputSerializer(AlertRuleChangeSerializer):
    kind = serializers.ChoiceField(
        choices=AlertRule.Kind.choices,
        help_text="percent, absolute and any replace the website's thresholds; "
        "the others add to them. A product's own rules come before its website's.",
    )


class AlertRuleViewSet(mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Websites"
    queryset = AlertRule.objects.select_related("website")
    serializer_class = AlertRuleSerializer
    serializer_classes = {"partial_update": AlertRuleChangeSerializer}
    filter_backends = ()

    @extend_schema(responses=AlertRuleSerializer, examples=[QUIETER])
    def partial_update(self, request: Request, pk: uuid.UUID) -> Response:
        """Change an alert rule."""
        rule = alert_rules.update_rule(
            self.get_object(), actor=actor_of(request), **self.valid_data()
        )
        return Response(AlertRuleSerializer(rule).data)

    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Delete an alert rule."""
        alert_rules.delete_rule(self.get_object(), actor=actor_of(request))
        return Response(status=204)


class WebsiteAlertRuleViewSet(mixins.ListModelMixin, ClientViewSet):
    tag = "Websites"
    queryset = AlertRule.objects.all()
    serializer_class = AlertRuleSerializer
    serializer_classes = {"create": AlertRuleInputSerializer}
    filter_backends = ()

    @cached_property
    def parent(self) -> Any:
        visible = super().owned(Website.objects.all())
        return get_object_or_404(visible, pk=self.kwargs["website_id"])

    def owned(self, rows: Any) -> Any:
        return rows.filter(website=self.parent)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the alert rules of a website and its products."""
        return super().list(request, *args, **kwargs)

    @extend_schema(responses={201: AlertRuleSerializer}, examples=[STEP, TARGET, STOCK])
    def create(self, request: Request, **kwargs: Any) -> Response:
        """Make an alert rule for a whole website."""
        return self._made(self.parent, None)

    def _made(self, website: Website, product: Product | None) -> Response:
        rule = alert_rules.create_rule(
            website, product=product, actor=actor_of(self.request), **self.valid_data()
        )
        location = {"Location": f"/api/v1/alert-rules/{rule.pk}"}
        return Response(AlertRuleSerializer(rule).data, status=201, headers=location)


class ProductAlertRuleViewSet(WebsiteAlertRuleViewSet):
    tag = "Products"

    @cached_property
    def parent(self) -> Any:
        visible = ClientViewSet.owned(self, Product.objects.select_related("website"))
        return get_object_or_404(visible, pk=self.kwargs["product_id"])

    def owned(self, rows: Any) -> Any:
        return rows.filter(product=self.parent)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the alert rules of a product alone."""
        return super().list(request, *args, **kwargs)

    @extend_schema(responses={201: AlertRuleSerializer}, examples=[TARGET, STOCK])
    def create(self, request: Request, **kwargs: Any) -> Response:
        """Make an alert rule for one product."""
        return self._made(self.parent.website, self.parent)


LISTED: dict[str, Any] = {"get": "list", "post": "create"}
urlpatterns = [
    path(
        "alert-rules/<uuid:pk>",
        AlertRuleViewSet.as_view(
            {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
        ),
        name="alert-rule",
    ),
    path(
        "websites/<uuid:website_id>/alert-rules",
        WebsiteAlertRuleViewSet.as_view(LISTED),
        name="website-alert-rules",
    ),
    path(
        "products/<uuid:product_id>/alert-rules",
        ProductAlertRuleViewSet.as_view(LISTED),
        name="product-alert-rules",
    ),
]
