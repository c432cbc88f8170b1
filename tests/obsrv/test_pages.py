from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client as Browser
from protego import Protego

import accounts.keys  # noqa: F401
import common.drf.idempotency  # noqa: F401
from common.drf import problems
from common.errors import Refused
from crawling.robots import Robots, agent
from tests.factories.static import static_root  # noqa: F401


def kinds(kind: type[Refused]) -> Iterator[type[Refused]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from kinds(narrower)


def test_the_link_of_every_problem_leads_to_its_explanation(client: Browser) -> None:
    page = client.get("/docs/errors").content.decode()
    refusals = {kind.code for kind in kinds(Refused)}
    answers = {code for code, _ in problems.BY_STATUS.values()} | set(
        problems.CODE_OF_STATUS.values()
    )
    assert refusals | answers <= set(problems.CODES)
    for name, code in problems.CODES.items():
        link = str(problems.Problem(code.status, name, "x").document()["type"])
        path, _, anchor = link.partition("#")
        assert path == "/docs/errors"
        assert f'id="{anchor}">{name} ' in page
        assert code.meaning in page
        assert code.remedy in page


def test_the_crawlers_page_blocks_it_as_it_says(client: Browser) -> None:
    page = client.get("/bot").content.decode()
    rules = [
        Robots(Protego.parse(text)) for text in re.findall(r"<pre>(User-agent[^<]+)</pre>", page)
    ]
    assert [robots.allows("https://shop.example/p/1") for robots in rules] == [False, True]
    assert rules[1].crawl_delay == 30
    assert agent() in page


@pytest.mark.parametrize("path", ["/docs/errors", "/bot"])
def test_public_pages_ask_nobody_else(client: Browser, path: str) -> None:
    page = client.get(path).content.decode()
    assert re.findall(r'(?:src|href)="(?:https?:)?//(?!localhost)', page) == []
    assert "<script" not in page


def test_the_api_page_links_to_both(client: Browser) -> None:
    described = client.get("/api/v1/schema?format=json").content.decode()
    assert "(/docs/errors)" in described
    assert "(/bot)" in described
