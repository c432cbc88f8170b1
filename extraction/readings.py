"""What one source says of one product, before the sources are weighed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from extraction.items import Field, Method, Variant

# How far each source is believed when nothing speaks against it.
TRUST = {
    Method.SITE: 0.97,
    Method.JSON_LD: 0.95,
    Method.MICRODATA: 0.92,
    Method.RDFA: 0.9,
    Method.EMBEDDED: 0.8,
    Method.OPENGRAPH: 0.85,
    Method.LEARNED: 0.75,
    Method.VISIBLE: 0.7,
    Method.URL: 0.6,
}


@dataclass(slots=True)
class Reading:
    method: Method
    fields: dict[str, Field] = field(default_factory=dict)
    variants: tuple[Variant, ...] = ()
    # The page this product calls its own.
    url: str = ""
    types: frozenset[str] = frozenset()

    def put(self, name: str, value: Any, raw: str = "", place: str = "") -> None:
        """Empty values say nothing; zero does."""
        if value is not None and value != "" and value != ():
            self.fields[name] = Field(value, self.method, raw, TRUST[self.method], place)

    def value(self, name: str) -> Any:
        found = self.fields.get(name)
        return found.value if found else None

    def text(self, name: str) -> str:
        return str(self.value(name) or "")
