from __future__ import annotations

from extraction.sites.rules import Parser, Rule

BIGCOMMERCE = Parser(
    "bigcommerce",
    "1",
    "BigCommerce (Stencil themes): price with tax first, the struck-out price, the sku line.",
    rules=(
        Rule("name", ".productView-title"),
        Rule("price", ".productView .price--withTax[data-product-price-with-tax]"),
        Rule("price", ".productView .price--withoutTax[data-product-price-without-tax]"),
        Rule("list_price", ".productView .price--rrp, .productView .price--non-sale"),
        Rule("sku", ".productView [data-product-sku]"),
        Rule("gtin", ".productView [data-product-upc]"),
    ),
    marks=(b"cdn11.bigcommerce.com", b"stencil-utils"),
)
