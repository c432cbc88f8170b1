"""Our pipeline and changedetection.io by turns over the same 200 pages with JSON-LD, a tenth
re-priced each time; ratios are of CPU for a page, all processes of the peer and our worker."""

from __future__ import annotations

import statistics

from benchmarks.figures import Figure, figure, note
from benchmarks.peers.changedetection import ChangeDetection, Round
from benchmarks.peers.environments import Unavailable, python_of, version_of
from benchmarks.pipeline import CHANGED, Turn, watched
from benchmarks.receiver import BulkReceiver
from tests.shop.bulk import BulkShop
from tests.shop.bulk_pages import TYPICAL

WATCHES = 200
# It reads these in its own process; for others it starts a process each.
FORMS = ("plain", "graph")
# What issue 5 asks for, by whether bytes that mean nothing differ at every visit.
GOALS = {False: 40, True: 100}


def measure(*, quick: bool) -> list[Figure]:
    try:
        version = version_of(python_of("changedetection"), "changedetection.io")
    except Unavailable as reason:
        return [note("changedetection.io", f"cannot be installed here: {reason}")]
    rounds = 2 if quick else 3
    return [row for volatile in GOALS for row in compare(version, rounds, volatile=volatile)]


def compare(version: str, rounds: int, *, volatile: bool) -> list[Figure]:
    ours: list[Turn] = []
    theirs: list[Round] = []
    shop = BulkShop(products=WATCHES, forms=FORMS, volatile=volatile, fill=TYPICAL)
    with (
        watched(shop) as bench,
        BulkReceiver() as receiver,
        ChangeDetection(shop, receiver) as peer,
    ):
        bench.run()
        for _ in range(rounds):
            changed = shop.reprice(CHANGED)
            receiver.times()
            ours.append(bench.run(changed))
            theirs.append(peer.check_all(len(changed)))
    kind = "volatile" if volatile else "identical"
    return rows(f"changedetection.io {version}, {kind} bytes", GOALS[volatile], ours, theirs)


def rows(name: str, goal: int, ours: list[Turn], theirs: list[Round]) -> list[Figure]:
    mine = [one.milliseconds for one in ours]
    its = [one.milliseconds for one in theirs]
    ratios = [two / one for one, two in zip(mine, its, strict=True)]
    told, right = ([getattr(one, key) for one in theirs] for key in ("told", "right"))
    middle = statistics.median(its)
    return [
        figure(f"times {name}", ratios, "×", peer=f"goal {goal}", against=goal),
        figure("  its CPU", its, "ms/page", peer="itself", against=middle),
        figure("  our CPU", mine, "ms/page", peer="its", against=middle),
        figure("  its pages read right", right, "pages", peer="watches", against=WATCHES),
        figure("  its notifications", told, "arrived", peer="changed", against=WATCHES * CHANGED),
    ]
