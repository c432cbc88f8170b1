from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from common import plots
from common.plots import Series, Tick

HOSTILE = '"><script>alert(1)</script>'
HOURS = [f"{hour:02d}:00" for hour in range(24)]


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)


def texts(markup: str) -> list[str]:
    return [one.text or "" for one in parsed(markup).iter("text")]


def heights(markup: str, tone: str) -> list[float]:
    rects = parsed(markup).iter("rect")
    return [float(one.get("height", 0)) for one in rects if one.get("class") == f"plot-{tone}"]


def test_bars_are_as_high_as_their_numbers_and_stand_on_each_other() -> None:
    drawn = plots.bars(
        "Crawls", ["a", "b"], [Series("ok", "good", [10, 5]), Series("failed", "bad", [0, 5])]
    )
    one, two = heights(drawn, "good")
    assert one == pytest.approx(2 * two, abs=0.2)
    assert heights(drawn, "bad") == [pytest.approx(two, abs=0.2)]
    assert {"0", "5", "10"} <= set(texts(drawn))


def test_a_column_says_its_numbers_on_hovering() -> None:
    drawn = plots.bars("Crawls", ["14:00"], [Series("ok", "good", [1234.0])], unit="pages")
    assert "14:00: ok 1,234\u00a0pages" in [one.text for one in parsed(drawn).iter("title")]


def test_many_labels_do_not_touch_each_other() -> None:
    drawn = plots.bars("Crawls", HOURS, [Series("ok", "good", [1.0] * 24)])
    shown = [text for text in texts(drawn) if ":" in text]
    assert 4 <= len(shown) <= 8
    wide = plots.bars("Crawls", HOURS, [Series("ok", "good", [1.0] * 24)], width=plots.WIDE)
    assert len([text for text in texts(wide) if ":" in text]) > len(shown)
    assert shown[-1] == "23:00"


@pytest.mark.parametrize("draw", [plots.bars, plots.lines])
def test_a_plot_of_nothing_says_so(draw: object) -> None:
    drawn = draw("Crawls", HOURS, [Series("ok", "good", [None] * 24)], empty="No crawl yet.")  # type: ignore[operator]
    assert "No crawl yet." in drawn
    assert "<svg" not in drawn


def test_a_line_is_interrupted_where_a_value_is_missing() -> None:
    drawn = plots.lines("Time", ["a", "b", "c", "d"], [Series("p50", "info", [1, None, 3, 4])])
    path = next(one.get("d", "") for one in parsed(drawn).iter("path"))
    assert path.count("M") == 2
    assert path.count("L") == 1


def test_a_sparkline_needs_two_values_and_is_coloured_by_its_way() -> None:
    assert plots.sparkline([None, 5.0], title="x") == ""
    assert 'class="spark plot-good"' in plots.sparkline([5.0, None, 4.0], title="cheaper")
    assert 'class="spark plot-bad"' in plots.sparkline([4.0, 5.0], title="dearer")
    assert 'class="spark plot-quiet"' in plots.sparkline([4.0, 4.0], title="the same")


def test_a_strip_has_one_tick_for_each_run_with_its_text() -> None:
    drawn = plots.ticks([Tick("good", "ok"), Tick("bad", "3 of 5 failed")], title="2 runs")
    assert [one.get("class") for one in parsed(drawn).iter("rect")] == ["plot-good", "plot-bad"]
    assert "3 of 5 failed" in drawn
    assert plots.ticks([], title="no run") == ""


@pytest.mark.parametrize(
    "drawn",
    [
        plots.bars(HOSTILE, [HOSTILE], [Series(HOSTILE, "good", [1])], unit=HOSTILE),
        plots.bars("x", ["x"], [Series("x", "good", [0])], empty=HOSTILE),
        plots.lines(HOSTILE, [HOSTILE], [Series(HOSTILE, "good", [1])]),
        plots.sparkline([1, 2], title=HOSTILE),
        plots.ticks([Tick("good", HOSTILE)], title=HOSTILE),
    ],
)
def test_texts_stay_texts_and_need_no_style(drawn: str) -> None:
    assert "<script" not in drawn
    assert HOSTILE in "".join(parsed(drawn).itertext()) + (parsed(drawn).get("title") or "")
    assert not re.search(r"\bstyle=|\bon\w+=", drawn)


def test_a_colour_that_the_style_sheet_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="no tone"):
        plots.ticks([Tick("pink", "x")], title="x")


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.5, "0.5"), (950, "950"), (1500, "1.5k"), (2_000_000, "2M")]
)
def test_large_numbers_are_shortened(value: float, shown: str) -> None:
    assert plots.short(value) == shown


def test_a_line_that_is_zero_all_along_is_drawn_on_the_ground() -> None:
    drawn = plots.lines("Errors", ["a", "b"], [Series("errors", "bad", [0.0, 0.0])])
    assert "0" in texts(drawn)
    assert [one for one in parsed(drawn).iter("path") if one.get("d")]
