"""Learn the weights of the visible-page reader from a folder of cases, and say how well they hold.

    .venv/bin/python -m benchmarks.learn_prices --cases DIR [--write]

A page is one choice among its price-like places and "no price" (conditional logit). The weights start
from what anybody would expect (price_priors.json) and are held near it, so that a few hundred pages
correct the expectations and cannot replace them. The printed figures are of sites the weights were not
learned from: five folds by site.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from extraction import visible_score
from extraction.items import Hints
from extraction.visible import look
from extraction.visible_prices import Candidate
from extraction.walks import Walk

WEIGHTS = Path(visible_score.__file__).with_name("visible_weights.json")
FOLDS = 5
HOLD = 0.5
PRIORS: dict[str, float] = json.loads(Path(__file__).with_name("price_priors.json").read_text())
ROUNDS = 250
NONE = "no_price"


@dataclass(slots=True)
class Page:
    site: str
    is_product: bool
    right: set[Decimal]
    candidates: list[Candidate]

    def rows(self) -> list[tuple[dict[str, float], bool]]:
        rows = [(one.features, one.amount in self.right) for one in self.candidates]
        return [*rows, ({NONE: 1.0}, not any(is_right for _, is_right in rows))]


def load(folder: Path) -> list[Page]:
    pages = []
    for line in (folder / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        gold = case["gold"]
        if gold["is_product"] and "price" not in gold:
            continue
        tree = LexborHTMLParser(gzip.decompress((folder / case["html"]).read_bytes()))
        sight = look(Walk(tree), url=case["url"] or "", hints=Hints())
        pages.append(Page(case["site"] or "", gold["is_product"], _right(gold), sight.candidates))
    return pages


def _right(gold: dict[str, Any]) -> set[Decimal]:
    if not gold["is_product"] or gold["price"] is None:
        return set()
    return {Decimal(str(price)) for price in [gold["price"], *gold.get("price_accept", [])]}


def learn(pages: list[Page]) -> dict[str, float]:
    """Adam on the log-likelihood of the right choices."""
    weights: defaultdict[str, float] = defaultdict(float, PRIORS)
    mean: dict[str, float] = {}
    spread: dict[str, float] = {}
    known = _known(pages)
    sites = Counter(page.site for page in pages)
    tables = [(page.rows(), 1 / math.sqrt(sites[page.site])) for page in pages]
    for step in range(1, ROUNDS + 1):
        slope = _slope(tables, weights)
        rate = 0.15 if step < ROUNDS * 0.6 else 0.05
        for name in known:
            value = slope[name] + (
                0.0 if name == NONE else HOLD * (weights[name] - PRIORS.get(name, 0.0))
            )
            mean[name] = 0.9 * mean.get(name, 0.0) + 0.1 * value
            spread[name] = 0.99 * spread.get(name, 0.0) + 0.01 * value * value
            corrected = mean[name] / (1 - 0.9**step)
            weights[name] -= rate * corrected / (math.sqrt(spread[name] / (1 - 0.99**step)) + 1e-8)
    return {name: round(weights[name], 3) for name in sorted(known)}


def _known(pages: list[Page]) -> set[str]:
    """Expected features, and others that at least eight pages have; rarer ones would be learned by heart."""
    counts = Counter(
        name for page in pages for name in {n for one in page.candidates for n in one.features}
    )
    return {name for name, count in counts.items() if count >= 8} | {NONE, *PRIORS}


def _slope(
    tables: list[tuple[list[tuple[dict[str, float], bool]], float]],
    weights: defaultdict[str, float],
) -> defaultdict[str, float]:
    slope: defaultdict[str, float] = defaultdict(float)
    for table, worth in tables:
        scores = [sum(weights[n] * v for n, v in features.items()) for features, _ in table]
        top = max(scores)
        shares = [math.exp(one - top) for one in scores]
        total = sum(shares)
        right = sum(share for share, (_, is_right) in zip(shares, table, strict=True) if is_right)
        for share, (features, is_right) in zip(shares, table, strict=True):
            pull = worth * (share / total - (share / right if is_right and right else 0.0))
            if abs(pull) > 1e-6:
                for name, value in features.items():
                    slope[name] += pull * value
    return slope


def use(weights: dict[str, float]) -> None:
    visible_score.WEIGHTS = {name: value for name, value in weights.items() if name != NONE}
    visible_score.NO_PRICE = weights[NONE]


def judge(pages: list[Page], counts: Counter[str]) -> None:
    for page in pages:
        visible_score.score(page.candidates)
        winner, _, _ = visible_score.choose(page.candidates)
        kind = "priced" if page.right else "unpriced" if page.is_product else "other"
        counts[kind] += 1
        if winner is not None:
            counts[kind + " answered"] += 1
            counts[kind + " right"] += winner.amount in page.right


def fold(page: Page) -> int:
    return int(hashlib.sha256(page.site.encode()).hexdigest()[:8], 16) % FOLDS


def report(title: str, counts: Counter[str]) -> None:
    right = counts["priced right"]
    print(
        f"{title}: recall {right / max(1, counts['priced']):.3f},"
        f" precision {right / max(1, counts['priced answered']):.3f} of {counts['priced']} priced pages;"
        f" a price on {counts['unpriced answered']} of {counts['unpriced']} products without one"
        f" and {counts['other answered']} of {counts['other']} other pages"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="replace the shipped weights")
    arguments = parser.parse_args()
    pages = load(arguments.cases)
    held_out: Counter[str] = Counter()
    for number in range(FOLDS):
        use(learn([page for page in pages if fold(page) != number]))
        judge([page for page in pages if fold(page) == number], held_out)
    report("sites not learned from", held_out)
    weights = learn(pages)
    use(weights)
    own: Counter[str] = Counter()
    judge(pages, own)
    report("all sites", own)
    if arguments.write:
        data = {"no_price": weights.pop(NONE), "weights": weights}
        WEIGHTS.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
