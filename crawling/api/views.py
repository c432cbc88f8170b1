from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import actor_of
from common.drf.views import ClientViewSet
from crawling import job_control
from crawling.api import filters
from crawling.api import serializers as shapes
from crawling.models import CrawlJob, CrawlTask


def accepted(job: CrawlJob) -> Response:
    """202: the job, and where to ask for its progress."""
    headers = {"Location": f"/api/v1/jobs/{job.pk}"}
    return Response(shapes.JobSerializer(job).data, status=202, headers=headers)


class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClientViewSet):
    tag = "Jobs"
    queryset = CrawlJob.objects.all()
    serializer_class = shapes.JobSerializer
    filterset_class = filters.JobFilter
    ordering_fields = ("created_at",)
    lookup_value_converter = "uuid"

    @extend_schema(request=None, responses=shapes.JobSerializer)
    @action(methods=["post"], detail=True)
    def cancel(self, request: Request, pk: uuid.UUID) -> Response:
        """Cancel a job; pages that are on their way are dropped."""
        job = job_control.cancel_job(self.get_object(), actor=actor_of(request))
        return Response(shapes.JobSerializer(job).data)

    @extend_schema(request=None, responses=shapes.JobSerializer)
    @action(methods=["post"], detail=True)
    def pause(self, request: Request, pk: uuid.UUID) -> Response:
        """Pause a job; pages that are on their way are dropped and fetched later."""
        job = job_control.pause_job(self.get_object(), actor=actor_of(request))
        return Response(shapes.JobSerializer(job).data)

    @extend_schema(request=None, responses=shapes.JobSerializer)
    @action(methods=["post"], detail=True)
    def resume(self, request: Request, pk: uuid.UUID) -> Response:
        """Go on with a paused job."""
        job = job_control.resume_job(self.get_object(), actor=actor_of(request))
        return Response(shapes.JobSerializer(job).data)

    @extend_schema(request=None, responses=shapes.JobSerializer)
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: uuid.UUID) -> Response:
        """Try the failed pages of a job again."""
        job = job_control.retry_job(self.get_object(), actor=actor_of(request))
        return Response(shapes.JobSerializer(job).data)


class JobTaskViewSet(mixins.ListModelMixin, ClientViewSet):
    tag = "Jobs"
    queryset = CrawlTask.objects.select_related("domain")
    serializer_class = shapes.TaskSerializer
    filterset_class = filters.TaskFilter

    @cached_property
    def job(self) -> CrawlJob:
        visible = super().owned(CrawlJob.objects.only("id"))
        found: CrawlJob = get_object_or_404(visible, pk=self.kwargs["job_id"])
        return found

    def owned(self, rows: Any) -> Any:
        return rows.filter(job=self.job)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the pages of a job."""
        return super().list(request, *args, **kwargs)
