"""Numbers as small pictures: bars, lines, a sparkline, a strip of ticks; SVG inside the page.

Pure: numbers and texts in, markup out. Texts are escaped by ``format_html``; colours are classes
of ``common/console.css``, so that a page goes dark by itself and no ``style`` is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

# A plot beside others, and one that has the whole row.
WIDTH, WIDE, HEIGHT = 480, 1000, 150
LEFT, RIGHT, TOP, BOTTOM = 40, 18, 8, 20
INNER_HEIGHT = HEIGHT - TOP - BOTTOM
# Room for a label below a plot, so that two do not touch each other.
LABEL_WIDTH = 62
SPARK_WIDTH, SPARK_HEIGHT = 96, 24
TICK_WIDTH, TICK_HEIGHT = 5, 18
TONES = ("good", "bad", "warn", "info", "quiet")
Value = float | None


@dataclass(frozen=True, slots=True)
class Series:
    """Values for the labels of a plot; ``tone`` is one of ``TONES``."""

    name: str
    tone: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Frame:
    """The area a plot is drawn in: how wide it is, for how many columns, up to which value."""

    width: int
    count: int
    top: float

    @property
    def room(self) -> float:
        return (self.width - LEFT - RIGHT) / self.count

    def middle(self, number: int) -> float:
        return round(LEFT + (number + 0.5) * self.room, 1)

    def y(self, value: float) -> float:
        return round(TOP + INNER_HEIGHT * (1 - value / self.top), 1)


@dataclass(frozen=True, slots=True)
class Tick:
    tone: str
    title: str


def bars(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str = "",
    width: int = WIDTH,
    empty: str = "Nothing yet.",
) -> SafeString:
    """A bar for each label; several series stand on each other."""
    sums = [sum(one.values[n] or 0 for one in series) for n in range(len(labels))]
    if not any(sums):
        return _figure(title, width, (), format_html('<p class="plot-empty">{}</p>', empty))
    # What bars count is whole: so is the half of two.
    frame = Frame(width, len(labels), max(_ceiling(max(sums)), 2))
    parts = [_bar(frame, n, series) for n in range(len(labels))]
    return _figure(title, width, series, _svg(title, frame, labels, series, parts, unit))


def lines(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str = "",
    width: int = WIDTH,
    empty: str = "Nothing yet.",
) -> SafeString:
    """A line for each series; where a value is missing, it is interrupted."""
    known = [value for one in series for value in one.values if value is not None]
    if not known:
        return _figure(title, width, (), format_html('<p class="plot-empty">{}</p>', empty))
    frame = Frame(width, len(labels), _ceiling(max(known)))
    parts = [_line(frame, one) for one in series]
    return _figure(title, width, series, _svg(title, frame, labels, series, parts, unit))


def sparkline(values: Sequence[Value], *, title: str) -> SafeString:
    """Steps without axes, for a cell; nothing where fewer than two values are known."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return SafeString("")
    low, span = min(known), max(known) - min(known)
    step, path, last = (SPARK_WIDTH - 4) / max(len(values) - 1, 1), "", 0.0
    for number, value in enumerate(values):
        if value is None:
            continue
        share = (value - low) / span if span else 0.5
        last = round(SPARK_HEIGHT - 3 - share * (SPARK_HEIGHT - 6), 1)
        x = round(number * step, 1)
        path += f"H{x}V{last}" if path else f"M{x} {last}"
    tone = "good" if known[-1] < known[0] else "bad" if known[-1] > known[0] else "quiet"
    return format_html(
        '<svg class="spark plot-{}" viewBox="0 0 {} {}" role="img"><title>{}</title>'
        '<path d="{}H{}"/><circle cx="{}" cy="{}" r="2"/></svg>',
        *(tone, SPARK_WIDTH, SPARK_HEIGHT, title),
        *(path, SPARK_WIDTH - 3, SPARK_WIDTH - 3, last),
    )


def ticks(row: Sequence[Tick], *, title: str) -> SafeString:
    """The oldest first, one small bar each, with a text on hovering."""
    if not row:
        return SafeString("")
    drawn = format_html_join(
        "",
        '<rect class="plot-{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        (
            (_tone(one.tone), n * TICK_WIDTH, *_tick_size(one.tone), one.title)
            for n, one in enumerate(row)
        ),
    )
    return format_html(
        '<svg class="ticks" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">'
        "<title>{2}</title>{3}</svg>",
        *(len(row) * TICK_WIDTH, TICK_HEIGHT, title, drawn),
    )


def _tick_size(tone: str) -> tuple[int, int, int]:
    """From the top, width, height: a quiet one is low, so that the others show."""
    height = 6 if tone == "quiet" else TICK_HEIGHT
    return TICK_HEIGHT - height, TICK_WIDTH - 1, height


def _figure(title: str, width: int, series: Sequence[Series], drawing: SafeString) -> SafeString:
    names = format_html_join(
        "",
        '<span class="plot-key plot-{}">{}</span>',
        ((_tone(one.tone), one.name) for one in series),
    )
    return format_html(
        '<figure class="plot{}"><figcaption><b>{}</b>{}</figcaption>'
        '<div class="plot-scroll">{}</div></figure>',
        *(" wide" if width > WIDTH else "", title, names, drawing),
    )


def _svg(
    title: str,
    frame: Frame,
    labels: Sequence[str],
    series: Sequence[Series],
    parts: Iterable[SafeString],
    unit: str,
) -> SafeString:
    hovers = (_hover(frame, n, label, series, unit) for n, label in enumerate(labels))
    every = (_axis(frame, unit), *parts, *hovers, _below(frame, labels))
    inner = format_html_join("", "{}", ((part,) for part in every))
    return format_html(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
        *(frame.width, HEIGHT, title, inner),
    )


def _axis(frame: Frame, unit: str) -> SafeString:
    marks = [(frame.y(frame.top * part), short(frame.top * part, unit)) for part in (0, 0.5, 1)]
    return format_html_join(
        "",
        '<line class="plot-grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text x="{}" y="{}" text-anchor="end">{}</text>',
        ((LEFT, frame.width - RIGHT, y, y, LEFT - 5, round(y + 3.5, 1), text) for y, text in marks),
    )


def _below(frame: Frame, labels: Sequence[str]) -> SafeString:
    """As many labels as have room, the last one always."""
    every = math.ceil(LABEL_WIDTH / frame.room)
    last = len(labels) - 1
    shown = [(n, label) for n, label in enumerate(labels) if (last - n) % every == 0]
    return format_html_join(
        "",
        '<text x="{}" y="{}" text-anchor="middle">{}</text>',
        ((frame.middle(n), HEIGHT - 5, label) for n, label in shown),
    )


def _bar(frame: Frame, number: int, series: Sequence[Series]) -> SafeString:
    width = round(max(frame.room * 0.8, 1), 1)
    x = round(frame.middle(number) - width / 2, 1)
    pieces, below = [], 0.0
    for one in series:
        value = one.values[number] or 0
        if value > 0:
            y, end = frame.y(below + value), frame.y(below)
            pieces.append((_tone(one.tone), x, y, width, round(max(end - y, 0.5), 1)))
            below += value
    return format_html_join(
        "", '<rect class="plot-{}" x="{}" y="{}" width="{}" height="{}"/>', pieces
    )


def _hover(
    frame: Frame, number: int, label: str, series: Sequence[Series], unit: str
) -> SafeString:
    """A column nobody sees, with the numbers as its text."""
    said = ", ".join(
        f"{one.name} {short(value, unit, exact=True)}"
        for one in series
        if (value := one.values[number])
    )
    return format_html(
        '<rect class="plot-hover" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        *(round(LEFT + number * frame.room, 1), TOP, round(frame.room, 1), INNER_HEIGHT),
        f"{label}: {said or 'none'}",
    )


def _line(frame: Frame, series: Series) -> SafeString:
    path, pen = "", "M"
    for number, value in enumerate(series.values):
        if value is None:
            pen = "M"
            continue
        path += f"{pen}{frame.middle(number)} {frame.y(value)}"
        # A point between two gaps is a dot: round caps draw a line of no length.
        path += "h0" if pen == "M" else ""
        pen = "L"
    return format_html('<path class="plot-line plot-{}" d="{}"/>', _tone(series.tone), path)


def _ceiling(value: float) -> float:
    """The next even step of its size, so that half of it is a plain number too."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * step for step in (1, 2, 4, 6, 8, 10) if size * step >= value)


def short(value: float, unit: str = "", *, exact: bool = False) -> str:
    """1 500 000 as 1.5M; exactly in texts for hovering."""
    text = f"{value:,.0f}" if exact and value >= 10 else f"{value:.3g}"
    if not exact:
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                text = f"{value / size:.3g}{letter}"
                break
    return f"{text}\u00a0{unit}".strip()


def _tone(name: str) -> str:
    if name not in TONES:
        raise ValueError(f"{name} is no tone: {', '.join(TONES)}")
    return name
