"""The functions that docs/webhooks.md tells receivers to use, taken from the page and run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from accounts.webhook_secrets import new_secret
from notifications.signing import signature_header

PAGE = (Path(settings.BASE_DIR) / "docs" / "webhooks.md").read_text()
SECRET, OTHER = new_secret(), new_secret()
BODY = '{"id": "evt_1", "name": "Überraschung"}'.encode()
Verify = Callable[[bytes, str], bool]


def example(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.S)
    assert found, language
    return found[1]


def python(body: bytes, header: str) -> bool:
    names: dict[str, Any] = {}
    exec(example("python"), names)
    return bool(names["verify"](body, header, SECRET))


def node(body: bytes, header: str) -> bool:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not on this machine: the Node example was not run")
    call = f"""{example("javascript")}
const body = Buffer.from({json.dumps(body.hex())}, "hex");
console.log(verify(body, {json.dumps(header)}, {json.dumps(SECRET)}));"""
    done = subprocess.run([program, "-e", call], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "true"


def header(*secrets: str, age: int = 0) -> str:
    return signature_header(BODY, secrets=secrets, timestamp=int(time.time()) - age)


@pytest.mark.parametrize("verify", [python, node])
def test_the_example_takes_what_is_good_and_refuses_what_is_not(verify: Verify) -> None:
    assert verify(BODY, header(SECRET))
    assert verify(BODY, header(OTHER, SECRET))
    assert not verify(BODY + b" ", header(SECRET))
    assert not verify(BODY, header(OTHER))
    assert not verify(BODY, header(SECRET, age=301))
    assert not verify(BODY, header(SECRET, age=-310))
    for nonsense in ("", "t=,v1=", "v1=00", "t=1", "t=x,v1=é"):
        assert not verify(BODY, nonsense)


@pytest.mark.parametrize("language", ["php", "go"])
def test_the_other_examples_are_there(language: str) -> None:
    assert "v1" in example(language)
