"""Make ``.venv`` hold what a lock file pins; with the standard library only.

Installs with uv where it can be had, with pip otherwise, and only when the lock has
changed since: a stamp inside the environment remembers it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
RUNTIME_LOCK = "requirements.lock"
NO_VENV = """\
Python {version} cannot make a virtual environment: its venv or ensurepip module is missing.
On Debian or Ubuntu: sudo apt install python{version}-venv
"""


def main(lock: str) -> None:
    with one_at_a_time():
        if not is_usable():
            leave_environment()
            create()
        if stamp(lock).exists() and stamp(lock).read_text() == fingerprint(lock):
            return
        install(lock)
        # The development lock is the runtime lock and more.
        for satisfied in {lock, RUNTIME_LOCK}:
            stamp(satisfied).write_text(fingerprint(satisfied))
        say("Environment ready.")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def stamp(lock: str) -> Path:
    return ENVIRONMENT / f"{lock}.installed"


def fingerprint(lock: str) -> str:
    # Scripts of an environment name its path, so a moved one is installed anew.
    return hashlib.sha256((ROOT / lock).read_bytes() + bytes(ENVIRONMENT)).hexdigest()


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    (ROOT / "var").mkdir(exist_ok=True)
    with (ROOT / "var" / "environment.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another command is making the environment of this checkout: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_usable() -> bool:
    probe = [str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


def leave_environment() -> None:
    """An environment cannot make itself anew: go on with the Python below it."""
    base = getattr(sys, "_base_executable", sys.executable)
    if Path(sys.prefix).resolve() == ENVIRONMENT and base != sys.executable:
        os.execv(base, [base, *sys.argv])  # noqa: S606


def create() -> None:
    say(f"Making .venv with Python {sys.version.split()[0]} …")
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    try:
        import ensurepip  # noqa: F401

        venv.create(ENVIRONMENT, with_pip=True, symlinks=True)
    except (ImportError, subprocess.CalledProcessError):
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        sys.exit(NO_VENV.format(version=f"{sys.version_info[0]}.{sys.version_info[1]}"))


def install(lock: str) -> None:
    count = sum(1 for line in (ROOT / lock).read_text().splitlines() if "==" in line)
    say(f"Installing {count} packages from {lock} (a minute or two the first time) …")
    if not (install_with_uv(lock) or install_with_pip(lock)):
        sys.exit(f"The packages of {lock} could not be installed; the lines above say why.")


def install_with_uv(lock: str) -> bool:
    """Many times faster than pip; any failure is left for pip to explain."""
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "uv>=0.9"], capture_output=True, check=False).returncode:  # noqa: S603
        return False
    command = [str(PYTHON), "-m", "uv", "pip", "install", "--quiet", "--python", str(PYTHON)]
    done = subprocess.run(  # noqa: S603
        [*command, "-r", str(ROOT / lock)],
        env={**os.environ, **uv_settings()},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        say("uv could not install them; trying pip, which takes longer …")
    return done.returncode == 0


def install_with_pip(lock: str) -> bool:
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*pip, "-r", str(ROOT / lock)], check=False).returncode == 0  # noqa: S603


def uv_settings() -> dict[str, str]:
    """uv reads no configuration of pip: it is told where pip would look."""
    found = {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy", "UV_NO_PROGRESS": "1"}
    for option, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("cert", "SSL_CERT_FILE"),
    ):
        value = pip_setting(option)
        if value and variable not in os.environ:
            found[variable] = value
    return found


def pip_setting(option: str) -> str:
    ask = [str(PYTHON), "-m", "pip", "config", "get", f"global.{option}"]
    told = subprocess.run(ask, capture_output=True, text=True, check=False)  # noqa: S603
    fallback = told.stdout.strip() if told.returncode == 0 else ""
    return os.environ.get(f"PIP_{option.upper().replace('-', '_')}", fallback)


if __name__ == "__main__":
    main(sys.argv[1])
