"""What the demo shop sells."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal

CURRENCY = "EUR"


@dataclass(frozen=True, slots=True)
class Article:
    slug: str
    name: str
    brand: str
    category: str
    price: Decimal
    sku: str
    gtin: str
    description: str
    in_stock: bool = True
    opengraph_only: bool = False
    changed_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def path(self) -> str:
        return f"/products/{self.slug}"

    @property
    def amount(self) -> str:
        return f"{self.price:.2f}"


CATEGORIES = {"home": "Desk & Living", "kitchen": "Kitchen & Table"}

# slug, name, brand, category, price, stock, description
ROWS = [
    ("desk-lamp", "Arc Desk Lamp", "Lumen & Co", "home", "39.90", True,
     "A dimmable LED lamp with a brass arm and a heavy foot that stays where you put it."),
    ("felt-desk-mat", "Felt Desk Mat", "Nordhus", "home", "34.00", True,
     "Pressed merino felt, 80 by 35 centimetres, with a cork underside."),
    ("wall-clock", "Station Wall Clock", "Bahnhof", "home", "79.00", True,
     "A silent sweep movement behind mineral glass, readable from across the room."),
    ("linen-cushion", "Washed Linen Cushion", "Nordhus", "home", "27.50", False,
     "Stonewashed linen with a feather filling, 45 by 45 centimetres."),
    ("oak-bookends", "Solid Oak Bookends", "Forst", "home", "45.00", True,
     "A pair cut from one block, oiled by hand, with a steel plate under each."),
    ("reading-light", "Clip Reading Light", "Lumen & Co", "home", "18.95", True,
     "Three warm levels, twelve hours on one charge, and a clip that spares the page."),
    ("stoneware-mug", "Stoneware Mug", "Tonwerk", "kitchen", "16.00", True,
     "Thrown in small batches, glazed inside, raw outside. Holds 350 millilitres."),
    ("french-press", "French Press 1 l", "Brewster", "kitchen", "49.90", True,
     "A double-walled steel press that keeps coffee hot for an hour."),
    ("chef-knife", "Chef’s Knife 20 cm", "Klinge", "kitchen", "119.00", True,
     "Forged carbon steel at 61 HRC with a walnut handle."),
    ("cast-iron-pan", "Cast Iron Pan 26 cm", "Gusswerk", "kitchen", "64.90", False,
     "Seasoned three times before it leaves the foundry. Works on any hob."),
    ("tea-towels", "Tea Towels, Set of 3", "Nordhus", "kitchen", "21.00", True,
     "Half linen, woven in a waffle pattern that dries fast."),
    ("pepper-mill", "Beech Pepper Mill", "Forst", "kitchen", "32.50", True,
     "A ceramic grinder with six settings in turned beech."),
]  # fmt: skip
OPENGRAPH_ONLY = {"wall-clock"}


def gtin13(number: int) -> str:
    """A valid number of the 200-299 range, which GS1 leaves to a shop's own use."""
    digits = f"200{number:09d}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def demo_articles() -> list[Article]:
    return [
        Article(
            slug=slug,
            name=name,
            brand=brand,
            category=category,
            price=Decimal(price),
            sku=f"HN-{1000 + number}",
            gtin=gtin13(4711 + number),
            description=description,
            in_stock=in_stock,
            opengraph_only=slug in OPENGRAPH_ONLY,
        )
        for number, (slug, name, brand, category, price, in_stock, description) in enumerate(ROWS)
    ]


class Catalogue:
    """Changed by a test or a command while the server's thread reads it."""

    def __init__(self, articles: list[Article]) -> None:
        self._lock = threading.Lock()
        self._articles = {article.slug: article for article in articles}
        self._removed: dict[str, Article] = {}

    def all(self) -> list[Article]:
        with self._lock:
            return list(self._articles.values())

    def get(self, slug: str) -> Article | None:
        with self._lock:
            return self._articles.get(slug)

    def set_price(self, slug: str, price: Decimal) -> None:
        with self._lock:
            self._put(replace(self._articles[slug], price=price))

    def set_stock(self, slug: str, *, in_stock: bool) -> None:
        with self._lock:
            self._put(replace(self._articles[slug], in_stock=in_stock))

    def remove(self, slug: str) -> None:
        with self._lock:
            self._removed[slug] = self._articles.pop(slug)

    def restore(self, slug: str) -> None:
        with self._lock:
            self._put(self._removed.pop(slug))

    def _put(self, article: Article) -> None:
        self._articles[article.slug] = replace(article, changed_at=datetime.now(UTC))
