"""How a figure is given: a median with its spread, beside a peer or a limit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypedDict


class Figure(TypedDict):
    name: str
    value: float
    unit: str
    peer: str
    ratio: float
    spread: str


def figure(name: str, values: Sequence[float], unit: str, *, peer: str, against: float) -> Figure:
    """``ratio`` is the median over what it is held against."""
    middle = statistics.median(values)
    return Figure(
        name=name,
        value=round(middle, 3),
        unit=unit,
        peer=peer,
        ratio=round(middle / against, 3) if against else 0.0,
        spread=f"{min(values):.3g} to {max(values):.3g} (n={len(values)})",
    )


def note(name: str, text: str) -> Figure:
    """Why there is no figure."""
    return Figure(name=name, value=0.0, unit="", peer=text, ratio=0.0, spread="")
