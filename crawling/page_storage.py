"""Where page files lie on this machine."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import FileSystemStorage

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
MODE = 0o640


class LocalPages(FileSystemStorage):
    """Names are hashes of what is in the file: a second write of a name brings the same
    bytes, and nobody ever sees half of them."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: IO[Any]) -> str:
        self.put(name, content.read())
        return name

    def put(self, name: str, data: bytes) -> None:
        """For names of our own making: what ``save`` checks first takes longer than writing."""
        path = f"{self.location}/{name}"
        # No fsync: a file that a power cut spoiled is found by its hash, and fetched again.
        draft = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            _write(draft, data)
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            _write(draft, data)
        os.replace(draft, path)  # noqa: PTH105 - once per page


def _write(draft: str, data: bytes) -> None:
    descriptor = os.open(draft, FLAGS, MODE)
    try:
        # A disk that fills up takes a part and says so only by the number.
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108 - beside the calls above
        raise
    finally:
        os.close(descriptor)
