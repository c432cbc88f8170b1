from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from crawling.api import failures, tasks, views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("jobs", views.JobViewSet, "job")
router.register("domains", views.DomainViewSet, "domain")

urlpatterns = [
    *router.urls,
    *tasks.urlpatterns,
    *failures.urlpatterns,
    path(
        "jobs/<uuid:job_id>/tasks", views.JobTaskViewSet.as_view({"get": "list"}), name="job-tasks"
    ),
]
