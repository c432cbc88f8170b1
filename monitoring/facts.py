"""How a product is shown in events."""

from __future__ import annotations

from monitoring.changes import plain
from monitoring.models import Product


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
