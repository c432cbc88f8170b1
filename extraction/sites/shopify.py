from __future__ import annotations

from extraction.sites.rules import Parser, Rule

SHOPIFY = Parser(
    "shopify",
    "1",
    "Shopify themes: the sale price before the compare-at price.",
    rules=(
        Rule("price", ".price--on-sale .price__sale .price-item--sale"),
        Rule("price", "[data-product-price], .product__price [data-price]"),
        Rule("list_price", ".price--on-sale .price__sale .price-item--regular"),
        Rule("list_price", ".product__price .price__compare, [data-compare-price]"),
    ),
    marks=(b"cdn.shopify.com/s/files", b"Shopify.theme", b"/cdn/shop/"),
)
