"""How the console writes times: they sort, and are read alike everywhere."""

from __future__ import annotations

DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "Y-m-d H:i"
