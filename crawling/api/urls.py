from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from crawling.api import domains, parsers, profiles, views

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("jobs", views.JobViewSet, "job")
router.register("tasks", views.TaskViewSet, "task")

urlpatterns = [
    *router.urls,
    *domains.urlpatterns,
    *profiles.urlpatterns,
    *parsers.urlpatterns,
    path(
        "jobs/<uuid:job_id>/tasks", views.JobTaskViewSet.as_view({"get": "list"}), name="job-tasks"
    ),
]
