from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from tests.test_docs import OUTSIDE_SETTINGS, variables_in_settings

ROOT = Path(settings.BASE_DIR)
BIN = Path(sys.executable).parent


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def own_services(compose: dict[str, Any]) -> dict[str, Any]:
    return {name: body for name, body in compose["services"].items() if "build" in body}


def test_the_compose_file_keeps_to_its_schema() -> None:
    command = str(BIN / "check-jsonschema")
    done = run(command, "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")
    assert done.returncode == 0, done.stdout


def test_the_dockerfile_passes_its_linter() -> None:
    done = run(str(BIN / "hadolint"), "Dockerfile")
    assert done.returncode == 0, done.stdout


def test_every_role_of_the_compose_file_exists(compose: dict[str, Any]) -> None:
    roles = set(re.findall(r"^([a-z]+)\)$", (ROOT / "bin" / "role").read_text(), re.M))
    used = {body["command"][0] for body in own_services(compose).values()}
    assert used == roles


def test_every_queue_has_a_worker_of_its_own(compose: dict[str, Any]) -> None:
    commands = [body["command"] for body in own_services(compose).values()]
    served = [rest for name, *rest in commands if name == "worker"]
    routed = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    wanted = routed | {settings.CELERY_TASK_DEFAULT_QUEUE}
    assert sorted(served) == sorted([name] for name in wanted)


def test_every_variable_given_to_the_image_is_read(compose: dict[str, Any]) -> None:
    given = {name for body in own_services(compose).values() for name in body["environment"]}
    assert given <= variables_in_settings() | OUTSIDE_SETTINGS


def test_every_variable_asked_of_the_user_is_in_the_example() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", (ROOT / "docker-compose.yml").read_text()))
    example = (ROOT / ".env.example").read_text()
    assert asked == {name for name in asked if re.search(rf"^{name}=", example, re.M)}


def test_everything_copied_into_the_image_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        copied = re.match(r"COPY (?!--from)(\S+)", line)
        if copied:
            assert (ROOT / copied[1]).exists()
            assert copied[1] not in ignored
    assert {"var", ".env", ".git"} <= set(ignored), "secrets and data stay outside"


def test_limits_fit_a_machine_with_eight_gigabytes(compose: dict[str, Any]) -> None:
    sizes = {"m": 1, "g": 1024}
    total = 0
    for name, body in compose["services"].items():
        limit = body["deploy"]["resources"]["limits"]["memory"]
        total += 0 if name == "migrate" else int(limit[:-1]) * sizes[limit[-1]]
    assert total <= 7 * 1024


def test_ports_are_open_to_this_machine_only(compose: dict[str, Any]) -> None:
    ports = [port for body in compose["services"].values() for port in body.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_static_files_are_collected_as_the_image_does(tmp_path: Path) -> None:
    done = run(
        sys.executable,
        "manage.py",
        "collectstatic",
        "--no-input",
        DJANGO_SETTINGS_MODULE="obsrv.settings",
        OBSRV_PRODUCTION="true",
        SECRET_KEY="build",
        STATIC_ROOT=str(tmp_path / "static"),
        OBSRV_VAR_DIR=str(tmp_path / "var"),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "static" / "unfold").exists()
    assert not (tmp_path / "var").exists(), "nothing is written beside them"


@pytest.mark.parametrize("script", ["up", "test", "lock", "role", "lib.sh"])
def test_scripts_are_sound_shell(script: str) -> None:
    assert run("sh", "-n", f"bin/{script}").returncode == 0


@pytest.mark.parametrize("script", ["bin/up", "bin/test", "bin/lock", "bin/role", ".ci/run"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_locks_name_exact_versions_and_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        for line in (ROOT / name).read_text().splitlines():
            assert re.match(r"[a-z0-9-]+==[\w.+!]+( ; .+)?$", line), line


def test_the_development_lock_holds_the_runtime_lock() -> None:
    runtime, dev = (
        set((ROOT / name).read_text().splitlines())
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runtime - dev == set()


def test_without_a_new_enough_python_bin_up_says_what_to_do(tmp_path: Path) -> None:
    checkout = tmp_path / "a b"
    shutil.copytree(ROOT / "bin", checkout / "bin")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname"):
        (tools / tool).symlink_to(shutil.which(tool) or "")
    done = run(str(checkout / "bin" / "up"), PATH=str(tools), OBSRV_PYTHON="")
    assert done.returncode == 1
    assert "needs Python 3.11" in done.stderr
