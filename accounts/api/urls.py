from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from accounts.api import views

router = SimpleRouter(trailing_slash=False)
router.register("api-keys", views.ApiKeyViewSet, "api-key")
router.register("clients", views.ClientAdminViewSet, "client")
router.register("audit-log", views.AuditViewSet, "audit-log")

urlpatterns = [
    path("me", views.MeView.as_view(), name="me"),
    path(
        "me/rotate-webhook-secret",
        views.RotateWebhookSecretView.as_view(),
        name="rotate-webhook-secret",
    ),
    *router.urls,
]
