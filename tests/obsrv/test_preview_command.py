from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db
PAGE = """<title>Lamp</title><script type="application/ld+json">{"@type": "Product",
 "name": "Lamp [red]x[/red]", "sku": "L-1", "offers": {"price": "20.00", "priceCurrency": "EUR",
 "availability": "https://schema.org/InStock"}}</script><h1>Lamp [red]x[/red]</h1><b>20,00 €</b>"""


def preview(*args: str) -> str:
    out = StringIO()
    call_command("preview", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def saved(tmp_path: Path) -> str:
    file = tmp_path / "page.html"
    file.write_text(PAGE)
    return str(file)


def test_a_saved_page_is_read_and_explained(saved: str) -> None:
    text = preview(saved)
    assert "outcome    product" in text
    assert "json-ld" in text
    assert "20.00" in text
    # Crawled text is no markup.
    assert "Lamp [red]x[/red]" in text


def test_json_is_what_the_api_answers(saved: str) -> None:
    found = json.loads(preview(saved, "--json", "--url", "https://shop.example/p/1"))
    assert found["url"] == "https://shop.example/p/1"
    assert found["fields"]["currency"]["value"] == "EUR"


def test_a_parser_is_chosen(saved: str) -> None:
    assert json.loads(preview(saved, "--json", "--parser", "magento"))["parser"] == "magento"
    with pytest.raises(CommandError, match="generic"):
        preview(saved, "--parser", "magic")


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(CommandError, match="cannot read"):
        preview("/no/such/file")
    with pytest.raises(CommandError, match="public web address"):
        preview("http://127.0.0.1/p")
