"""Accuracy and speed of extraction on a folder of judged pages, beside extruct + price-parser.

The folder has ``index.jsonl`` and pages as ``tests/pages`` documents, or the judged set's own
``evaluate.py``, whose rules for right and wrong are then used. Peers: the ``peers`` group.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import importlib.util
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.extraction_adapter import extract, parse_price
from benchmarks.figures import Figure, figure
from extraction.items import NoProduct
from extraction.product import extract_fully, extract_product

OWN_CASES = Path(__file__).parent.parent / "tests" / "pages"
SURE = "pages sure by JSON-LD alone"
MARKED = "pages priced by other markup"
STRUCTURED = "pages with structured data (both)"
FIELDS = ("name", "price", "currency", "availability", "sku", "gtin")
Extract = Callable[[bytes, str | None, str | None], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    entry: dict[str, Any]
    body: bytes

    @property
    def held_out(self) -> bool:
        """A third of the sites, by hash: set apart while tuning."""
        site = str(self.entry.get("site") or self.entry["id"])
        return int(hashlib.sha256(site.encode()).hexdigest()[:8], 16) % 3 == 0

    def read(self, extractor: Extract) -> dict[str, Any]:
        return extractor(self.body, self.entry["url"], self.entry.get("charset_header"))


def measure(*, quick: bool, cases: str = "") -> list[Figure]:
    folder = Path(cases) if cases else OWN_CASES
    found = list(load(folder))
    judge = _module(folder / "evaluate.py", "judged_cases") if cases else None
    figures = [*_agreement(found)]
    if judge is not None:
        figures += _accuracy(found, judge)
        figures += _price_strings(folder, judge)
    return [*figures, *_speed(found, folder, repeats=3 if quick else 5)]


def load(folder: Path) -> Iterator[Case]:
    index = folder / "index.jsonl"
    if index.exists():
        for line in index.read_text().splitlines():
            entry = json.loads(line)
            yield Case(entry, gzip.decompress((folder / entry["html"]).read_bytes()))
        return
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        url = (case / "url").read_text().strip()
        yield Case({"id": case.name, "url": url, "tags": []}, (case / "page.html").read_bytes())


def _module(path: Path, name: str) -> ModuleType | None:
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _agreement(cases: list[Case]) -> Iterator[Figure]:
    differing = [c for c in cases if not _agree(c)]
    yield figure(
        "fast and full path differ",
        [len(differing)],
        "pages",
        peer=f"{len(cases)} pages",
        against=1,
    )


def _agree(case: Case) -> bool:
    url = case.entry["url"] or ""
    return extract_product(case.body, url) == extract_fully(case.body, url)


def _accuracy(cases: list[Case], judge: ModuleType) -> Iterator[Figure]:
    for part, chosen in (("all", cases), ("held out", [c for c in cases if c.held_out])):
        tally: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        wrong = [0, 0]
        for case in chosen:
            said = case.read(extract)
            if not case.entry["gold"]["is_product"]:
                wrong[0] += 1
                wrong[1] += bool(said["is_product"])
                continue
            _count(case, said, judge, tally)
        for name in FIELDS:
            support, answered, right, _ = tally[name]
            yield _share(f"{name} recall, {part}", right, support)
            yield _share(f"{name} precision, {part}", right, answered)
        yield _share(f"non-products called products, {part}", wrong[1], wrong[0])
        yield figure(
            f"price where none is shown, {part}", [tally["price"][3]], "pages", peer="0", against=1
        )


def _count(
    case: Case, said: dict[str, Any], judge: ModuleType, tally: dict[str, list[int]]
) -> None:
    for name in FIELDS:
        verdict = judge.judge(name, case.entry["gold"], said)
        if verdict is None:
            continue
        has_value, right, answered = verdict
        counts = tally[name]
        if has_value:
            counts[0] += 1
            counts[1] += answered
            counts[2] += right
        else:
            counts[3] += not right


def _share(name: str, part: int, whole: int) -> Figure:
    return figure(name, [part / whole if whole else 0.0], "share", peer=f"of {whole}", against=1)


def _price_strings(folder: Path, judge: ModuleType) -> Iterator[Figure]:
    path = folder / "prices.jsonl"
    if not path.exists():
        return
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    right = 0
    for row in rows:
        hints = (row["currency_hint"], row["decimal_sep_hint"], row["locale_hint"])
        amount, _ = parse_price(row["string"], *hints)
        right += judge.dec(amount) == judge.dec(row["gold_amount"])
    yield _share("price strings right", right, len(rows))


def _speed(cases: list[Case], folder: Path, *, repeats: int) -> Iterator[Figure]:
    peer = _peer(folder)
    kinds: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        kind = _kind(case)
        kinds[kind].append(case)
        if kind in (SURE, MARKED):
            kinds[STRUCTURED].append(case)
    # What was made so far is nobody's garbage: each pays for its own alone.
    gc.freeze()
    for name, chosen in sorted(kinds.items()):
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(_pages_per_second(chosen, extract))
            if peer is not None:
                theirs.append(_pages_per_second(chosen, peer))
        against = statistics.median(theirs) if theirs else 0.0
        told = f"extruct + price-parser {against:.0f}/s" if theirs else "peers not installed"
        yield figure(name, ours, "pages/s/core", peer=told, against=against)


def _kind(case: Case) -> str:
    """How a page had to be read: by JSON-LD alone, with a tree, or as a shopper sees it."""
    item = extract_product(case.body, case.entry["url"] or "")
    if isinstance(item, NoProduct):
        return "pages without a product"
    price = item.fields.get("price")
    if item.reason.startswith("JSON-LD names one"):
        return SURE
    if price is not None and price.source in ("json-ld", "microdata", "opengraph", "rdfa"):
        return MARKED
    return "pages priced by the visible page"


def _peer(folder: Path) -> Extract | None:
    try:
        module = _module(folder / "baseline_extruct.py", "baseline_extruct")
    except ModuleNotFoundError:
        return None
    if module is None:
        return None
    extractor: Extract = module.extract
    return extractor


def _pages_per_second(cases: list[Case], extractor: Extract) -> float:
    if not cases:
        return 0.0
    started = time.process_time()
    for case in cases:
        case.read(extractor)
    return len(cases) / (time.process_time() - started)
