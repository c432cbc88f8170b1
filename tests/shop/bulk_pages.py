"""The bulk shop's products and pages: seeded, so that both processes know the same truth."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

CURRENCIES = ["EUR", "EUR", "USD", "GBP", "CHF", "PLN"]
ADJECTIVES = ["Compact", "Rugged", "Silent", "Foldable", "Classic", "Nordic", "Thermal", "Slim"]
NOUNS = ["Kettle", "Backpack", "Headphones", "Lamp", "Drill", "Tent", "Keyboard", "Blender"]
BRANDS = ["Acme", "Borealis", "Cobalt", "Dunlin", "Evergreen", "Fjordal", "Granit", "Helix"]
SYLLABLES = ["ba", "con", "del", "fir", "gra", "hol", "in", "jus", "kel", "lor", "men", "nat", "ol"]

# Twenty products in a row hold the mix: 70 % JSON-LD (six plain, four @graph, two ProductGroup,
# two AggregateOffer), 10 % OpenGraph, 10 % microdata, 5 % damaged JSON-LD, 5 % visible text only.
MIX = (
    ["plain"] * 6
    + ["graph"] * 4
    + ["group"] * 2
    + ["aggregate"] * 2
    + ["opengraph"] * 2
    + ["microdata"] * 2
    + ["damaged", "visible"]
)
FORMS = tuple(dict.fromkeys(MIX))


@dataclass(frozen=True, slots=True)
class Truth:
    index: int
    form: str
    name: str
    brand: str
    sku: str
    price: Decimal
    currency: str
    in_stock: bool
    version: int = 0

    @property
    def path(self) -> str:
        return f"/p/{self.index}"

    @property
    def availability(self) -> str:
        return "InStock" if self.in_stock else "OutOfStock"


class BulkCatalogue:
    """Every product at every version; a version is made by re-pricing a share of all."""

    def __init__(self, products: int, seed: int, forms: Sequence[str] = MIX) -> None:
        self.seed = seed
        self.forms = forms
        self.shares: list[float] = []
        self._histories = [[first_truth(index, seed, forms)] for index in range(products)]

    def __len__(self) -> int:
        return len(self._histories)

    @property
    def version(self) -> int:
        return len(self.shares)

    def truth(self, index: int, version: int | None = None) -> Truth:
        wanted = self.version if version is None else version
        if not 0 <= wanted <= self.version:
            raise ValueError(f"version {wanted} is not yet made")
        return next(truth for truth in reversed(self._histories[index]) if truth.version <= wanted)

    def reprice(self, share: float) -> list[int]:
        self.shares.append(share)
        dice = random.Random(f"{self.seed}:version:{self.version}")
        changed = dice.sample(range(len(self)), round(len(self) * share))
        for index in changed:
            history = self._histories[index]
            price = moved(history[-1].price, dice)
            history.append(replace(history[-1], price=price, version=self.version))
        return changed


def moved(price: Decimal, dice: random.Random) -> Decimal:
    """At least 3 % away; a small price only rises, or rounding would one day eat the change.
    Steps of a tax, 19 to 23 %, would be doubted."""
    up = [*range(103, 119), *range(124, 130)]
    factors = up if price < 5 else [*range(70, 80), *range(86, 98), *up]
    factor = Decimal(dice.choice(factors)) / 100
    return (price * factor).quantize(Decimal("0.01"))


def first_truth(index: int, seed: int, forms: Sequence[str] = MIX) -> Truth:
    dice = random.Random(f"{seed}:product:{index}")
    brand = dice.choice(BRANDS)
    return Truth(
        index=index,
        form=forms[index % len(forms)],
        name=f"{brand} {dice.choice(ADJECTIVES)} {dice.choice(NOUNS)} {dice.randint(100, 999)}",
        brand=brand,
        sku=f"SKU-{index:06d}",
        price=Decimal(dice.randint(500, 90_000)).scaleb(-2),
        currency=dice.choice(CURRENCIES),
        in_stock=dice.random() < 0.85,
    )


# How many fragments fill a page: 30 to 130 KB, or about 130 KB as shops on the web have.
SMALL, TYPICAL = (45, 195), (95, 285)


class PageMaker:
    """Pages around one product, filled from a seeded pool of fragments."""

    def __init__(self, seed: int, fill: tuple[int, int] = SMALL) -> None:
        self.seed = seed
        self.fill = fill

    @cached_property
    def fragments(self) -> list[str]:
        dice = random.Random(f"{self.seed}:fragments")
        words = ["".join(dice.choices(SYLLABLES, k=dice.randint(1, 4))) for _ in range(3000)]
        return [make_fragment(dice, words, number) for number in range(600)]

    def page(self, truth: Truth, base: str, extra: str = "") -> bytes:
        dice = random.Random(f"{self.seed}:page:{truth.index}")
        filler = dice.choices(self.fragments, k=dice.randint(*self.fill))
        cut = len(filler) // 4
        head, box = FORM_MAKERS[truth.form](truth, base + truth.path)
        return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{truth.name}</title>
<link rel="canonical" href="{base}{truth.path}">
{head}{extra}
</head><body>
<header><nav>{"".join(filler[:cut])}</nav></header>
<main>{box}</main>
<aside>{"".join(filler[cut:])}</aside>
<footer><a href="/about">About</a></footer>
</body></html>""".encode()


def make_fragment(dice: random.Random, words: list[str], number: int) -> str:
    def text(count: int) -> str:
        return " ".join(dice.choices(words, k=count))

    link = (
        f'<a class="tile__link tile__link--{number % 7}" href="/c/{dice.choice(words)}/{number}">'
    )
    if number % 3:
        return (
            f'<div class="tile tile--{number}" data-id="{dice.getrandbits(48):x}">{link}'
            f'<span class="tile__title">{text(6)}</span></a><p class="tile__text">{text(42)}</p>'
            f'<ul class="tile__facts"><li>{text(3)}</li><li>{text(4)}</li><li>{text(3)}</li></ul></div>'
        )
    return (
        f'<section class="review" id="r{dice.getrandbits(32):x}"><h4>{text(5)}</h4>'
        f"<blockquote>{text(55)}</blockquote><cite>{text(2)}</cite>{link}{text(2)}</a></section>"
    )


def offer(truth: Truth, url: str) -> dict[str, Any]:
    return {
        "@type": "Offer",
        "url": url,
        "price": str(truth.price),
        "priceCurrency": truth.currency,
        "availability": f"https://schema.org/{truth.availability}",
    }


def product(truth: Truth, url: str, **fields: Any) -> dict[str, Any]:
    return {
        "@type": "Product",
        "name": truth.name,
        "sku": truth.sku,
        "url": url,
        "brand": {"@type": "Brand", "name": truth.brand},
        "offers": offer(truth, url),
        **fields,
    }


def script(data: dict[str, Any]) -> str:
    text = json.dumps({"@context": "https://schema.org", **data})
    return f'<script type="application/ld+json">{text}</script>'


def visible_box(truth: Truth) -> str:
    stock = "In stock" if truth.in_stock else "Out of stock"
    return (
        f'<h1 class="product-title">{truth.name}</h1>'
        f'<p class="product-price">{truth.currency} {truth.price}</p>'
        f'<p class="product-stock">{stock}</p>'
        f"<button{'' if truth.in_stock else ' disabled'}>Add to cart</button>"
    )


def plain(truth: Truth, url: str) -> tuple[str, str]:
    return script(product(truth, url)), visible_box(truth)


def graph(truth: Truth, url: str) -> tuple[str, str]:
    nodes = [
        {"@type": "Organization", "name": "Bulk Shop"},
        {"@type": "WebPage", "@id": url},
        product(truth, url, mainEntityOfPage={"@id": url}),
    ]
    return script({"@graph": nodes}), visible_box(truth)


def group(truth: Truth, url: str) -> tuple[str, str]:
    """All variants cost the same, so that the page has one true price."""
    variants = [
        product(truth, f"{url}?color={color}", sku=f"{truth.sku}-{color}", color=color)
        for color in ("black", "green", "white")
    ]
    data = {
        "@type": "ProductGroup",
        "name": truth.name,
        "productGroupID": truth.sku,
        "url": url,
        "brand": {"@type": "Brand", "name": truth.brand},
        "variesBy": ["https://schema.org/color"],
        "hasVariant": variants,
    }
    return script(data), visible_box(truth)


def aggregate(truth: Truth, url: str) -> tuple[str, str]:
    """The truth is the low price."""
    offers = {
        "@type": "AggregateOffer",
        "lowPrice": str(truth.price),
        "highPrice": str(truth.price + 20),
        "offerCount": 3,
        "priceCurrency": truth.currency,
        "availability": f"https://schema.org/{truth.availability}",
    }
    return script(product(truth, url, offers=offers)), visible_box(truth)


def damaged(truth: Truth, url: str) -> tuple[str, str]:
    """A trailing comma, as templates that loop leave it."""
    return script(product(truth, url)).replace("}</script>", ",}</script>"), visible_box(truth)


def opengraph(truth: Truth, url: str) -> tuple[str, str]:
    tags = {
        "og:type": "product",
        "og:title": truth.name,
        "og:url": url,
        "product:price:amount": str(truth.price),
        "product:price:currency": truth.currency,
        "product:availability": "instock" if truth.in_stock else "oos",
        "product:retailer_item_id": truth.sku,
    }
    head = "".join(f'<meta property="{name}" content="{value}">' for name, value in tags.items())
    return head, visible_box(truth)


def microdata(truth: Truth, url: str) -> tuple[str, str]:
    box = (
        '<div itemscope itemtype="https://schema.org/Product">'
        f'<h1 itemprop="name">{truth.name}</h1><meta itemprop="sku" content="{truth.sku}">'
        '<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">'
        f'<link itemprop="url" href="{url}">'
        f'<span itemprop="price" content="{truth.price}">{truth.price}</span>'
        f'<meta itemprop="priceCurrency" content="{truth.currency}">'
        f'<link itemprop="availability" href="https://schema.org/{truth.availability}">'
        "</div></div>"
    )
    return "", box


def visible(truth: Truth, _url: str) -> tuple[str, str]:
    return "", visible_box(truth)


FORM_MAKERS: dict[str, Callable[[Truth, str], tuple[str, str]]] = {
    "plain": plain,
    "graph": graph,
    "group": group,
    "aggregate": aggregate,
    "damaged": damaged,
    "opengraph": opengraph,
    "microdata": microdata,
    "visible": visible,
}
