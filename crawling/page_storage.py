"""Where page files lie on this machine."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import FileSystemStorage


class LocalPages(FileSystemStorage):
    """Names are hashes of what is in the file: a second write of a name brings the same
    bytes, and nobody ever sees half of them."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: IO[Any]) -> str:
        path = self.path(name)
        # No fsync: a file that a power cut spoiled is found by its hash, and fetched again.
        draft = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.read())
        Path(draft).replace(path)
        return name
