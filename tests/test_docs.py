from __future__ import annotations

import ast
import re
import uuid
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.urls import resolve

ROOT = Path(settings.BASE_DIR)
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Read by scripts and containers, not by Django.
OUTSIDE_SETTINGS = {
    "FORWARDED_ALLOW_IPS",
    "OBSRV_PYTHON",
    "OBSRV_VERSION",
    "POSTGRES_PASSWORD",
    "WORKER_CONCURRENCY",
}
# Set by the test run alone.
NOT_FOR_USERS = {"OBSRV_TEST_RUN"}


def variables_in_settings() -> set[str]:
    tree = ast.parse((ROOT / "obsrv" / "settings.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "env"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


def test_every_variable_is_in_the_example_file_and_every_line_of_it_is_read() -> None:
    text = (ROOT / ".env.example").read_text()
    named = set(re.findall(r"^#?([A-Z0-9_]+)=", text, re.M))
    assert named - OUTSIDE_SETTINGS == variables_in_settings() - NOT_FOR_USERS


def test_every_variable_is_documented_and_every_documented_one_is_read() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    named = set(re.findall(r"^\| `([A-Z0-9_]+)`", text, re.M))
    assert named == variables_in_settings() | OUTSIDE_SETTINGS


def test_variables_outside_the_settings_are_read_somewhere() -> None:
    places = [ROOT / "docker-compose.yml", *(ROOT / "bin").iterdir()]
    text = "".join(place.read_text() for place in places if place.is_file())
    assert [name for name in sorted(OUTSIDE_SETTINGS) if name not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    text = page.read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text))
    scripts = set(re.findall(r"\bbin/([a-z]+)\b(?!/)", text)) - {"python"}
    assert commands <= set(get_commands())
    assert [name for name in scripts if not (ROOT / "bin" / name).exists()] == []


def test_the_first_calls_name_real_paths() -> None:
    paths = re.findall(r"\$API(/[a-z$ID/-]+)", (ROOT / "README.md").read_text())
    assert len(paths) > 4
    for path in paths:
        resolve(f"/api/v1{path.replace('$ID', str(uuid.uuid4()))}")


def test_the_readme_fits_a_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60


def test_decisions_are_numbered_without_gaps() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == list(range(1, len(numbers) + 1))
