from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from crawling.api import domains, failures, profiles, proxies, tasks, views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("jobs", views.JobViewSet, "job")

urlpatterns = [
    *router.urls,
    *tasks.urlpatterns,
    *failures.urlpatterns,
    *domains.urlpatterns,
    *profiles.urlpatterns,
    *proxies.urlpatterns,
    path(
        "jobs/<uuid:job_id>/tasks", views.JobTaskViewSet.as_view({"get": "list"}), name="job-tasks"
    ),
]
