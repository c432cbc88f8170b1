from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from monitoring.api import alert_rules, exports, previews, products, snapshots, views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("websites", views.WebsiteViewSet, "website")
router.register("candidates", views.CandidateViewSet, "candidate")

urlpatterns = [
    *router.urls,
    *previews.urlpatterns,
    *products.urlpatterns,
    *snapshots.urlpatterns,
    *alert_rules.urlpatterns,
    *exports.urlpatterns,
    path(
        "websites/<uuid:website_id>/candidates",
        views.WebsiteCandidateViewSet.as_view({"get": "list"}),
        name="website-candidates",
    ),
    path(
        "websites/<uuid:website_id>/urls",
        views.FoundUrlViewSet.as_view({"get": "list"}),
        name="website-urls",
    ),
]
