"""How a page is asked for, as the crawl profile of its job has it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from django.db import connection


@dataclass(frozen=True, slots=True)
class Options:
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: int = 30
    max_page_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 5
    respect_robots: bool = True

    @property
    def personal(self) -> bool:
        """The shop may answer these headers with a page that is for nobody else."""
        return bool(self.headers)


STANDARD = Options()
# One plain statement: it is asked for every claim.
OF_JOBS = f"""
    SELECT j.id, {", ".join(f"p.{option.name}" for option in fields(Options))}
    FROM crawling_crawljob j JOIN crawling_crawlprofile p ON p.id = j.profile_id
    WHERE j.id = ANY(%s)
"""  # noqa: S608


def of_jobs(job_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Options]:
    """Those of the jobs that have a profile, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(OF_JOBS, [list(set(job_ids))])
        return {job_id: Options(_parsed(headers), *rest) for job_id, headers, *rest in cursor}


def _parsed(headers: str | dict[str, str]) -> dict[str, str]:
    # Django's connection leaves JSON to its fields.
    parsed: dict[str, str] = json.loads(headers) if isinstance(headers, str) else headers
    return parsed
