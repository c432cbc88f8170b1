"""A client of the API, as small as one can be."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

TIMEOUT_SECONDS = 30
LOOK_SECONDS = 0.25


class ApiError(Exception):
    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status = status
        self.problem = problem


class Api:
    def __init__(self, url: str, key: str) -> None:
        self.base = f"{url}/api/v1"
        self.key = key
        # An environment's proxy has no business on loopback.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str) -> Any:
        return self._call("GET", path)

    def post(self, path: str, body: object | None = None) -> Any:
        return self._call("POST", path, body if body is not None else {})

    def put(self, path: str, body: object) -> Any:
        return self._call("PUT", path, body)

    def wait(self, path: str, done: Callable[[Any], bool], *, seconds: float = 60) -> Any:
        """Ask until the answer is as wanted."""
        deadline = time.monotonic() + seconds
        while not done(answer := self.get(path)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} still says {json.dumps(answer)[:500]}")
            time.sleep(LOOK_SECONDS)
        return answer

    def _call(self, method: str, path: str, body: object | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310
            self.base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(error.code, json.loads(error.read())) from error
        return json.loads(text) if text else None
