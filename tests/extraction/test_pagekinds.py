from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from extraction.items import Hints, NoProduct, PageKind
from extraction.pagekinds import judge_page
from extraction.visible import read_visible
from extraction.walks import Walk

PRODUCT = """<title>Wool hat</title><h1>Wool hat</h1><div class="product-info">
<span class="price">€29.90</span><button>Add to cart</button><p>SKU: WH-1</p></div>"""
TILE = "<li class='product-card'><a href='/hat-{0}'>Hat {0} <span class='price'>€1{0}.00</span></a></li>"
LISTING = "<title>Hats</title><h1>Hats</h1><ul>" + "".join(map(TILE.format, range(9))) + "</ul>"
FILLER = "".join(f"<p>Paragraph {number} of a long story.</p>" for number in range(80))


def judge(
    html: str, url: str = "", *, marked_up: bool = False, types: tuple[str, ...] = ()
) -> NoProduct | None:
    walk = Walk(LexborHTMLParser(f"<html><body>{html}</body></html>"))
    seen = read_visible(walk, url=url, hints=Hints())
    return judge_page(
        walk,
        url=url,
        hints=Hints(),
        visible=seen,
        marked_up=marked_up,
        markup_types=frozenset(types),
    )


def test_a_page_with_one_price_and_a_buy_button_may_be_a_product() -> None:
    assert judge(PRODUCT, "https://shop.example/wool-hat") is None


@pytest.mark.parametrize(
    ("html", "url", "kind"),
    [
        (LISTING, "https://shop.example/category/hats", PageKind.CATEGORY),
        (LISTING, "https://shop.example/search?q=hat", PageKind.CATEGORY),
        (f"<title>How we make hats</title><h1>How we make hats</h1>{FILLER}", "https://shop.example/blog/hats", PageKind.ARTICLE),
        ("<title>404 - Page not found</title><h1>Oops</h1>", "https://shop.example/p/1", PageKind.SOFT_404),
        ("<title>Hoppla</title><h1>Seite nicht gefunden</h1>" + FILLER, "", PageKind.SOFT_404),
        ("<title>Just a moment...</title><p>Checking your browser</p>", "", PageKind.BOT_WALL),
        ("<title>Shop</title><h1>Are you a human?</h1><p>Solve the captcha</p>", "", PageKind.BOT_WALL),
        ("<div id='root'></div><script src='/app.js'></script>", "https://shop.example/p/1", PageKind.SCRIPT_ONLY),
        (FILLER, "https://shop.example/about", PageKind.NO_PRODUCT),
    ],
)  # fmt: skip
def test_other_pages_are_named_for_what_they_are(html: str, url: str, kind: PageKind) -> None:
    verdict = judge(html, url)
    assert verdict is not None
    assert verdict.kind is kind
    assert verdict.reason


def test_an_article_with_a_product_in_its_markup_is_still_an_article() -> None:
    html = f"<title>Ten best hats</title><h1>Ten best hats</h1>{FILLER}"
    verdict = judge(html, "https://mag.example/posts/hats", marked_up=True, types=("Article",))
    assert verdict is not None
    assert verdict.kind is PageKind.ARTICLE


def test_a_product_without_a_price_is_not_lost_when_marked_up() -> None:
    html = f"<title>Wool hat</title><h1>Wool hat</h1><p>Sold out</p>{FILLER}"
    assert judge(html, "https://shop.example/products/wool-hat", marked_up=True) is None


def test_a_broken_address_does_not_matter() -> None:
    assert judge(PRODUCT, "http://[") is None


def test_a_page_drawn_by_scripts_whose_markup_names_a_product_is_not_lost() -> None:
    html = "<title>Wool hat</title><div id='root'></div><script src='/app.js'></script>"
    assert judge(html, "https://shop.example/p/1", marked_up=True) is None
