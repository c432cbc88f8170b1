"""Page files in a bucket that speaks S3; the only importer of django-storages."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from django.core.files.base import ContentFile
from storages.backends.s3 import S3Storage

# A bucket that is away must not hold up a batch for longer than its lease.
CONNECT_SECONDS = 2
READ_SECONDS = 5


class BucketPages(S3Storage):  # type: ignore[misc]
    def get_default_settings(self) -> dict[str, Any]:
        patience = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": 1},
            max_pool_connections=32,
        )
        fixed = {"client_config": patience, "file_overwrite": True, "default_acl": None}
        return {**super().get_default_settings(), **fixed}

    def put(self, name: str, data: bytes) -> None:
        self.save(name, ContentFile(data))
