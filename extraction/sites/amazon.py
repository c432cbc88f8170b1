from __future__ import annotations

from extraction.sites.rules import Parser, Rule

AMAZON = Parser(
    "amazon",
    "1",
    "Amazon: the price of the buy box, never of a used copy, a rate or another product.",
    rules=(
        Rule("name", "#productTitle, #ebooksProductTitle, #btAsinTitle"),
        Rule("price", "#corePriceDisplay_desktop_feature_div .priceToPay .a-offscreen"),
        Rule("price", "#corePriceDisplay_desktop_feature_div .priceToPay"),
        Rule("price", "#corePrice_feature_div .a-price:not(.a-text-price) .a-offscreen"),
        Rule("price", "#apex_desktop .a-price:not(.a-text-price) .a-offscreen"),
        Rule("price", "#priceblock_dealprice, #priceblock_ourprice, #priceblock_saleprice"),
        Rule("price", "#price_inside_buybox, #newBuyBoxPrice, #kindle-price"),
        Rule("price", "#actualPriceValue .priceLarge, #buyingPriceValue .priceLarge"),
        Rule("list_price", ".basisPrice .a-text-price .a-offscreen"),
        Rule("list_price", ".priceBlockStrikePriceString, #listPriceValue"),
        Rule("stock", "#outOfStock", means="OutOfStock"),
        Rule("stock", "#add-to-cart-button, #buy-now-button", means="InStock"),
        Rule("brand", "#bylineInfo", pattern=r"(?:Visit the |Brand: |Marke: )?(.+?)(?: Store)?$"),
        Rule("sku", "input#ASIN, input[name='ASIN'], input[name='ASIN.0']", "value"),
    ),
    hosts=r"(?:^|\.)amazon\.(?:[a-z]{2,3}|co\.[a-z]{2}|com\.[a-z]{2})$",
)
