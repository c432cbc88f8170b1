"""Feeds mutated pages, JSON-LD, prices and URLs to extraction until something raises or is slow.

    python -m benchmarks.fuzz [-max_total_time=600] [CORPUS]

Needs the ``fuzz`` dependency group (atheris); its flags are those of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["extraction"]):
    from extraction.identity import product_id_from_url, read_gtin
    from extraction.numbers import parse_amount, parse_price
    from extraction.product import extract_fully, extract_product

URL = "https://shop.example/p/lamp-12345"
PAGES = Path(__file__).parent.parent / "tests" / "pages"
LIMITS = ("-timeout=5", "-rss_limit_mb=512", "-max_len=60000")
FRAMES = (
    b"%s",
    b'<html><head><script type="application/ld+json">%s</script></head><h1>Lamp</h1></html>',
    b'<h1>Lamp</h1><div itemscope itemtype="http://schema.org/Product">%s</div>',
    b'<title>Lamp</title><script>window.__STATE__ = %s;</script><p class="price">%s</p>',
    b'<h1>Lamp</h1><span class="price">%s</span><button>Add to cart</button>',
    b'<meta property="og:type" content="product"><meta property="og:price:amount" content="%s">',
)


def try_one(data: bytes) -> None:
    kind, rest = (data[0] if data else 0), data[1:]
    if kind % 8 == 6:
        _try_again_and_again(rest[:40])
        return
    if kind % 8 == 7:
        text = rest.decode("utf-8", "surrogateescape" if kind & 8 else "replace")
        _try_texts(text)
        return
    body = FRAMES[kind % len(FRAMES)].replace(b"%s", rest)
    extract_product(body, URL)
    extract_fully(body, URL, content_type="text/html; charset=utf-16" if kind & 128 else "")


def _try_again_and_again(token: bytes) -> None:
    """One token as often as a large page holds it: what grows with its square is caught by the timeout."""
    opening, _, again = token.rpartition(b"|")
    extract_product(b"<h1>Lamp</h1>" + opening + again * (300_000 // max(1, len(again))), URL)


def _try_texts(text: str) -> None:
    parse_price(text)
    parse_amount(text)
    read_gtin(text)
    product_id_from_url(text)
    extract_product(b"<h1>Lamp</h1><b>9,99 EUR</b>", text)


def main() -> None:
    named = any(not argument.startswith("-") for argument in sys.argv[1:])
    # What is found is written into the first folder; the cases are only read.
    with tempfile.TemporaryDirectory() as found:
        corpus = [] if named else [found, str(PAGES)]
        atheris.Setup([*sys.argv, *LIMITS, *corpus], try_one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
