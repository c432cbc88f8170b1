from __future__ import annotations

from django.apps import AppConfig


class CrawlingConfig(AppConfig):
    name = "crawling"
