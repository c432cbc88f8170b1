from __future__ import annotations

from django.apps import AppConfig


class ObsrvConfig(AppConfig):
    name = "obsrv"

    def ready(self) -> None:
        from obsrv import checks  # noqa: F401
