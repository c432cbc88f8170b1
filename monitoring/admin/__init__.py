"""The console's screens of what is watched; importing them registers them."""

from __future__ import annotations

from monitoring.admin import changes, history, products, websites

__all__ = ["changes", "history", "products", "websites"]
