from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from notifications.api import views
from notifications.api.channels import ChannelViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("webhooks", views.WebhookViewSet, "webhook")
router.register("events", views.EventViewSet, "event")
router.register("deliveries", views.DeliveryViewSet, "delivery")
router.register("channels", ChannelViewSet, "channel")

urlpatterns = [
    *router.urls,
    path("event-types", views.EventTypesView.as_view(), name="event-types"),
]
