from __future__ import annotations

from extraction.sites.rules import Parser, Rule

PRESTASHOP = Parser(
    "prestashop",
    "1",
    "PrestaShop: current and regular price, the reference, the availability line.",
    rules=(
        Rule("price", ".product-prices .current-price [itemprop=price]", "content"),
        Rule("price", ".product-prices .current-price-value", "content"),
        Rule("price", "#our_price_display"),
        Rule("list_price", ".product-prices .regular-price, #old_price_display"),
        Rule("sku", ".product-reference span, #product_reference .editable"),
        Rule("stock", "#product-availability .product-unavailable", means="OutOfStock"),
        Rule("stock", "#product-availability .product-available", means="InStock"),
    ),
    marks=(b"var prestashop =", b"prestashop.com", b"/modules/ps_"),
)
