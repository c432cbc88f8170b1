"""The HTML of the demo shop."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from obsrv.demo.catalogue import CATEGORIES, CURRENCY, Article

SHOP_NAME = "Hearth & Nook"
TEXTS = {
    "about": (
        "About us",
        "Hearth & Nook is a small shop for things that last. It exists only on this machine, "
        "so that Obsrv can show what it does without touching anyone's server.",
    ),
    "imprint": ("Imprint", "Hearth & Nook, 1 Loopback Lane, 12700 Localhost. Sells nothing."),
    "shipping": ("Shipping", "Free from 60 €, otherwise 4.90 €. Two to three working days."),
}

CSS = """
:root { --ink: #22252b; --soft: #6d7280; --line: #e6e3dd; --paper: #faf8f5; --accent: #b4532a }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
header, main, footer { max-width: 64rem; margin: auto; padding: 1.25rem }
header { display: flex; gap: 1.5rem; align-items: baseline; border-bottom: 1px solid var(--line) }
header strong { margin-right: auto; font: 600 1.4rem Georgia, serif }
a { color: inherit; text-decoration: none } a:hover { color: var(--accent) }
h1, h2 { font-family: Georgia, serif; font-weight: 600 }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 1.25rem;
  padding: 0; list-style: none }
.card { background: #fff; border: 1px solid var(--line); border-radius: .75rem; padding: 1rem }
.card img, .product img { width: 100%; height: auto; border-radius: .5rem }
.card .amount { color: var(--soft) }
.product { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem }
.product .price { font-size: 1.6rem }
.stock.in { color: #2c7a4b } .stock.out { color: #a33 }
.breadcrumb, footer { color: var(--soft); font-size: .9rem }
button { padding: .7rem 1.4rem; border: 0; border-radius: .5rem; color: #fff; background: var(--accent) }
button:disabled { background: #bbb }
@media (max-width: 40rem) { .product { grid-template-columns: 1fr } }
"""


def document(title: str, body: str, *, head: str = "") -> str:
    links = "".join(
        f'<a href="/category/{slug}">{escape(name)}</a>' for slug, name in CATEGORIES.items()
    )
    texts = " · ".join(f'<a href="/{slug}">{title}</a>' for slug, (title, _) in TEXTS.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} | {escape(SHOP_NAME)}</title>
<link rel="stylesheet" href="/style.css">
{head}
</head>
<body>
<header><strong><a href="/">{escape(SHOP_NAME)}</a></strong>{links}</header>
<main>{body}</main>
<footer>{texts}</footer>
</body>
</html>
"""


def listing_page(title: str, articles: list[Article]) -> str:
    return document(title, f"<h1>{escape(title)}</h1>{_cards(articles)}")


def text_page(slug: str) -> str:
    title, text = TEXTS[slug]
    return document(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def missing_page() -> str:
    return document("Page not found", "<h1>Page not found</h1><p>This page is gone.</p>")


def product_page(article: Article, *, base: str, related: list[Article]) -> str:
    return document(
        article.name,
        _breadcrumb(article) + _buy_box(article) + f"<h2>You may also like</h2>{_cards(related)}",
        head=_product_head(article, base),
    )


def _product_head(article: Article, base: str) -> str:
    url = base + article.path
    tags = {
        "og:type": "product",
        "og:title": article.name,
        "og:description": article.description,
        "og:url": url,
        "og:image": f"{base}/images/{article.slug}.svg",
        "og:site_name": SHOP_NAME,
        "product:brand": article.brand,
        "product:price:amount": article.amount,
        "product:price:currency": CURRENCY,
        "product:availability": "in stock" if article.in_stock else "out of stock",
        "product:retailer_item_id": article.sku,
    }
    lines = [f'<link rel="canonical" href="{escape(url)}">']
    lines += [f'<meta property="{name}" content="{escape(value)}">' for name, value in tags.items()]
    if not article.opengraph_only:
        lines.append(json_ld(_product_data(article, base)))
    return "\n".join(lines)


def json_ld(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    return f'<script type="application/ld+json">{text}</script>'


def _product_data(article: Article, base: str) -> dict[str, Any]:
    return {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": article.name,
        "description": article.description,
        "image": f"{base}/images/{article.slug}.svg",
        "sku": article.sku,
        "gtin13": article.gtin,
        "brand": {"@type": "Brand", "name": article.brand},
        "category": CATEGORIES[article.category],
        "offers": {
            "@type": "Offer",
            "url": base + article.path,
            "price": article.amount,
            "priceCurrency": CURRENCY,
            "availability": f"https://schema.org/{'InStock' if article.in_stock else 'OutOfStock'}",
            "itemCondition": "https://schema.org/NewCondition",
        },
    }


def _breadcrumb(article: Article) -> str:
    name = escape(CATEGORIES[article.category])
    return (
        f'<nav class="breadcrumb"><a href="/">Home</a> › '
        f'<a href="/category/{article.category}">{name}</a> › {escape(article.name)}</nav>'
    )


def _buy_box(article: Article) -> str:
    stock = (
        '<p class="stock in">In stock</p><button>Add to basket</button>'
        if article.in_stock
        else '<p class="stock out">Sold out</p><button disabled>Add to basket</button>'
    )
    return f"""<article class="product">
<img src="/images/{article.slug}.svg" alt="{escape(article.name)}" width="480" height="360">
<div><h1>{escape(article.name)}</h1><p>{escape(article.brand)}</p>
<p class="price">{article.amount} €</p>{stock}
<p>{escape(article.description)}</p><p>Item no. {article.sku}</p></div>
</article>"""


def _cards(articles: list[Article]) -> str:
    cards = "".join(
        f'<li class="card"><a href="{article.path}">'
        f'<img src="/images/{article.slug}.svg" alt="" width="320" height="240">'
        f"<h3>{escape(article.name)}</h3></a>"
        f'<span class="amount">{article.amount} €</span></li>'
        for article in articles
    )
    return f'<ul class="grid">{cards}</ul>'


def image(article: Article) -> str:
    hue = sum(map(ord, article.slug)) % 360
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 240">'
        f'<rect width="320" height="240" fill="hsl({hue} 35% 88%)"/>'
        f'<circle cx="160" cy="110" r="62" fill="hsl({hue} 40% 62%)"/>'
        f'<text x="160" y="215" text-anchor="middle" font-family="Georgia" font-size="18" '
        f'fill="hsl({hue} 30% 30%)">{escape(article.name)}</text></svg>'
    )


def sitemap(articles: list[Article], base: str) -> str:
    places = ["/", *(f"/category/{slug}" for slug in CATEGORIES), *(f"/{slug}" for slug in TEXTS)]
    entries = [f"<url><loc>{base}{place}</loc></url>" for place in places]
    entries += [
        f"<url><loc>{base}{article.path}</loc>"
        f"<lastmod>{article.changed_at.isoformat(timespec='seconds')}</lastmod></url>"
        for article in articles
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        + "".join(entries)
        + "</urlset>"
    )
