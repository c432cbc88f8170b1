"""The console's screens of what is watched; importing them registers them."""

from __future__ import annotations

from monitoring.admin import alerts, candidates, changes, found_urls, history, products, websites

__all__ = ["alerts", "candidates", "changes", "found_urls", "history", "products", "websites"]
