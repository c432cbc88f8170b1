from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from monitoring.api import snapshots, views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("websites", views.WebsiteViewSet, "website")
router.register("candidates", views.CandidateViewSet, "candidate")
router.register("products", views.ProductViewSet, "product")
router.register("changes", views.ChangeViewSet, "change")

urlpatterns = [
    *router.urls,
    *snapshots.urlpatterns,
    path(
        "websites/<uuid:website_id>/candidates",
        views.WebsiteCandidateViewSet.as_view({"get": "list"}),
        name="website-candidates",
    ),
    path(
        "products/<uuid:product_id>/history",
        views.HistoryViewSet.as_view({"get": "list"}),
        name="product-history",
    ),
    path(
        "products/<uuid:product_id>/changes",
        views.ProductChangeViewSet.as_view({"get": "list"}),
        name="product-changes",
    ),
]
