"""How products and websites are shown in events."""

from __future__ import annotations

from monitoring.changes import plain
from monitoring.models import Product, Website


def product_object(product: Product) -> dict[str, object]:
    price = product.current_price
    return {
        "id": str(product.pk),
        "website_id": str(product.website_id),
        "name": product.name,
        "url": product.original_url,
        "sku": product.sku,
        "price": None if price is None else plain(price),
        "currency": product.current_currency,
        "stock_status": product.current_stock_status,
    }


def website_object(website: Website) -> dict[str, object]:
    return {
        "id": str(website.pk),
        "name": website.name,
        "base_url": website.base_url,
        "status": website.status,
    }
