"""The servers of one layout, held by every process that needs them."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import IO

from obsrv.embedded.layout import EmbeddedError, Layout, prepare_sockets, tidy
from obsrv.embedded.servers import Postgres, Server, Valkey


class Servers:
    """The servers of one layout, started on demand and shared between processes."""

    def __init__(self, layout: Layout, *, postgres: bool = True, valkey: bool = True) -> None:
        self.layout = layout
        self.needed: list[Server] = []
        self.needed += [Postgres(layout)] if postgres else []
        self.needed += [Valkey(layout)] if valkey else []
        self._users: IO[str] | None = None
        self._holder = 0

    def start(self) -> None:
        """Start what is not running and hold the servers until ``stop`` or exit."""
        if self._users is not None:
            return
        try:
            self.layout.log("x").parent.mkdir(parents=True, exist_ok=True)
            with self._starting():
                prepare_sockets(self.layout)
                self._users = self._hold()
                self._holder = os.getpid()
                for server in self.needed:
                    server.ensure_running()
        except PermissionError as error:
            self._let_go()
            raise EmbeddedError(
                f"no permission for {error.filename}: was Obsrv started as another user before?"
            ) from error
        except EmbeddedError:
            self._let_go()
            raise
        atexit.register(self.stop)

    def stop(self) -> None:
        """Let go; the last holder stops the servers, whoever started them."""
        atexit.unregister(self.stop)
        # A forked child shares the parent's lock and must not give it up.
        if self._users is None or self._holder != os.getpid():
            return
        users, self._users = self._users, None
        with self._starting(), users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            for server in (Postgres(self.layout), Valkey(self.layout)):
                server.stop()
            tidy(self.layout)

    def _let_go(self) -> None:
        users, self._users = self._users, None
        if users is not None:
            users.close()

    def _hold(self) -> IO[str]:
        users = (self.layout.root / "embedded.users").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
        return users

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with (self.layout.root / "embedded.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
