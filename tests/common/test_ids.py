from __future__ import annotations

from common.ids import uuid7


def test_ids_made_later_sort_later() -> None:
    import time

    first = uuid7()
    time.sleep(0.002)
    assert first < uuid7()
    assert first.version == 7
