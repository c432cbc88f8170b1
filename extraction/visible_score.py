"""Which price candidate a shopper would name: a weighted sum per candidate, one choice per page."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

from extraction.numbers import Kind
from extraction.visible_prices import Candidate

# Learned by benchmarks/learn_prices.py: a weight per feature, and the score of "this page shows no price".
_DATA = json.loads(Path(__file__).with_name("visible_weights.json").read_text())
WEIGHTS: dict[str, float] = _DATA["weights"]
NO_PRICE: float = _DATA["no_price"]
# The winner must be this much more likely than the next amount, and than no price at all.
MARGIN = 1.3
AGAINST_NONE = 1.2
LEAST = 0.35


def score(candidates: list[Candidate]) -> None:
    for one in candidates:
        one.score = sum(WEIGHTS.get(name, 0.0) * value for name, value in one.features.items())


def choose(candidates: list[Candidate]) -> tuple[Candidate | None, float, str]:
    """The winner, how likely it is, and why there is none."""
    if not candidates:
        return None, 0.0, "no price-like text"
    chances, none = probabilities(candidates)
    ranked = sorted(chances.items(), key=lambda item: -item[1])
    amount, chance = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    if chance < none * AGAINST_NONE or chance < LEAST:
        return None, chance, "no place is likely enough to be the price"
    if chance < second * MARGIN:
        return None, chance, f"{amount} and {ranked[1][0]} are too close to call"
    places = [one for one in candidates if one.amount == amount]
    if min(one.price.kind for one in places) > Kind.UNIT:
        return None, chance, f"{amount} is called {places[0].price.kind.name.lower()}"
    return max(places, key=lambda one: one.score), chance, ""


def probabilities(candidates: list[Candidate]) -> tuple[dict[Decimal, float], float]:
    """The chance of each amount, and of no price; the places of one amount add up."""
    top = max(NO_PRICE, *(one.score for one in candidates))
    none = math.exp(NO_PRICE - top)
    shares: dict[Decimal, float] = {}
    for one in candidates:
        shares[one.amount] = shares.get(one.amount, 0.0) + math.exp(one.score - top)
    total = none + sum(shares.values())
    return {amount: share / total for amount, share in shares.items()}, none / total
