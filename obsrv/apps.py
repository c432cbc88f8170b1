from __future__ import annotations

from django.apps import AppConfig


class ObsrvConfig(AppConfig):
    name = "obsrv"
