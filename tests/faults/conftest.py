"""The table that ``bin/test faults`` ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from obsrv.demo.receiver import Receiver
from tests.faults.invariants import Found
from tests.faults.rig import Rig
from tests.shop.server import ScriptedShop

Tell = Callable[[str, float, Found], None]
TABLE: list[str] = []
ROW = "{:<44} {:>11} {:>7} {:>7} {:>9} {:>13}"


@pytest.fixture
def tell() -> Tell:
    def add(fault: str, seconds: float, found: Found) -> None:
        gap = f"{found.smallest_gap:.2f} s"
        took = f"{seconds:.1f} s"
        TABLE.append(ROW.format(fault, took, found.checks, found.events, found.received, gap))

    return add


@pytest.fixture
def rig(tmp_path: Path, shop: ScriptedShop, receiver: Receiver) -> Iterator[Rig]:
    with Rig(tmp_path / "var", shop, receiver) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TABLE:
        terminalreporter.section("faults")
        head = ("fault", "all done in", "checks", "events", "received", "smallest gap")
        for line in (ROW.format(*head), *TABLE):
            terminalreporter.line(line)
