"""The cases of tests/pages: a page, its URL and what must be read; adding one needs no code."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from extraction.items import NoProduct, ProductItem
from extraction.product import extract_fully, extract_product

CASES = sorted(path for path in (Path(__file__).parent.parent / "pages").iterdir() if path.is_dir())

MONEY = ("price", "list_price", "unit_price")


def read(case: Path) -> tuple[bytes, str, dict[str, Any]]:
    expected = json.loads((case / "expected.json").read_text())
    return (case / "page.html").read_bytes(), (case / "url").read_text().strip(), expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_page_means_what_its_case_says(case: Path) -> None:
    body, url, expected = read(case)
    item = extract_product(body, url)
    if "no_product" in expected:
        assert isinstance(item, NoProduct), item
        assert item.kind == expected["no_product"], item.reason
        return
    assert isinstance(item, ProductItem), item
    assert {name: said(item, name) for name in expected} == {
        name: Decimal(value) if name in MONEY and value else value
        for name, value in expected.items()
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_short_way_gives_what_the_long_way_gives(case: Path) -> None:
    body, url, _ = read(case)
    assert extract_product(body, url) == extract_fully(body, url)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_value_of_a_product_names_its_source(case: Path) -> None:
    body, url, _ = read(case)
    item = extract_product(body, url)
    if isinstance(item, ProductItem):
        assert item.fields["name"].value == item.name
        assert item.price is None or item.fields["price"].value == item.price
        assert all(0 < field.confidence <= 1 for field in item.fields.values())


def said(item: ProductItem, name: str) -> Any:
    value = getattr(item, name)
    return len(value) if name == "variants" else value
