"""Prices over time as an SVG: a stepped line, bands where it was sold out, min, average, max.

Written by hand: the only text that comes from outside is escaped here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from xml.sax.saxutils import escape

from common.sheets import is_xml
from monitoring.changes import UNAVAILABLE, plain
from monitoring.series import Point

# As a file, and inside a page.
WIDTH, WIDE, HEIGHT = 720, 1040, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 30
# Below that the hours count.
SHORT = dt.timedelta(days=2)
COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626", "#0891b2")
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#475569}.t{font-weight:600;fill:#0f172a}"
    ".o{fill:#fecaca;fill-opacity:.5}.g{stroke:#e2e8f0}.l{fill:none;stroke-width:2}"
    ".a{stroke:#94a3b8;stroke-dasharray:4 3}"
)


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment to point at, with what it says on hovering."""

    at: dt.datetime
    price: Decimal
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    since: dt.datetime
    until: dt.datetime
    low: Decimal
    high: Decimal
    width: int = WIDTH

    def x(self, at: dt.datetime) -> float:
        inside = min(max(at, self.since), self.until)
        share = (inside - self.since) / max(self.until - self.since, dt.timedelta(seconds=1))
        return round(LEFT + share * (self.width - LEFT - RIGHT), 1)

    def y(self, price: Decimal) -> float:
        span = self.high - self.low or Decimal(1)
        share = float((price - self.low) / span)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def draw(
    title: str,
    lines: Sequence[Line],
    since: dt.datetime,
    until: dt.datetime,
    *,
    marks: Sequence[Mark] = (),
    inside: bool = False,
) -> str:
    """``inside`` a page of the console its style sheet says how it looks, else the file does."""
    prices = [p.price for line in lines for p in line.points if p.price is not None]
    frame = Frame(since, until, *_bounds(prices), width=WIDE if inside else WIDTH)
    parts = [*(_inside(title) if inside else _head(title)), *_grid(frame)]
    if len(lines) == 1:
        parts += _bands(frame, lines[0].points)
    if not prices:
        parts.append(_text(frame.width / 2, HEIGHT / 2, "No price in this time.", "middle"))
    for number, line in enumerate(lines):
        parts.append(_steps(frame, line.points, COLOURS[number % len(COLOURS)]))
    parts += (_mark(frame, mark) for mark in marks if since <= mark.at <= until)
    parts += _figures(frame, lines, prices)
    return "".join((*parts, "</svg>"))


def _bounds(prices: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    if not prices:
        return Decimal(0), Decimal(1)
    low, high = min(prices), max(prices)
    margin = (high - low) / 10 or high / 10 or Decimal(1)
    return max(low - margin, Decimal(0)), high + margin


def _head(title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img"><title>{_safe(title)}</title>'
        f"<style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    )
    yield _text(LEFT, 18, title[:90], css="t")


def _inside(title: str) -> Iterator[str]:
    yield (
        f'<svg class="price-chart" viewBox="0 0 {WIDE} {HEIGHT}" role="img" '
        f'aria-label="{_safe(title).replace(chr(34), "&quot;")}">'
    )


def _mark(frame: Frame, mark: Mark) -> str:
    at = f'cx="{frame.x(mark.at)}" cy="{frame.y(mark.price)}"'
    return f'<circle class="m" {at} r="4"><title>{_safe(mark.text)}</title></circle>'


def _grid(frame: Frame) -> Iterator[str]:
    for step in range(5):
        price = frame.low + (frame.high - frame.low) * step / 4
        y = frame.y(price)
        yield f'<line class="g" x1="{LEFT}" x2="{frame.width - RIGHT}" y1="{y}" y2="{y}"/>'
        yield _text(LEFT - 6, y + 4, plain(price.quantize(Decimal("0.01"))), "end")
    short = frame.until - frame.since <= SHORT
    shape = "%m-%d %H:%M" if short else "%Y-%m-%d"
    for step in range(5):
        at = frame.since + (frame.until - frame.since) * step / 4
        anchor = "start" if step == 0 else "end" if step == 4 else "middle"
        yield _text(frame.x(at), HEIGHT - 10, f"{at:{shape}}", anchor)


def _bands(frame: Frame, points: Sequence[Point]) -> Iterator[str]:
    """From the check that found it sold out to the one that did not."""
    began: dt.datetime | None = None
    for point in points:
        if point.stock in UNAVAILABLE:
            began = began or point.at
        elif began is not None:
            yield _band(frame, began, point.at)
            began = None
    if began is not None:
        yield _band(frame, began, frame.until)


def _band(frame: Frame, since: dt.datetime, until: dt.datetime) -> str:
    x, end = frame.x(since), frame.x(until)
    return (
        f'<rect class="o" x="{x}" y="{TOP}" width="{max(end - x, 1):.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM}"><title>out of stock</title></rect>'
    )


def _steps(frame: Frame, points: Sequence[Point], colour: str) -> str:
    path, last = "", None
    for point in points:
        if point.price is None or point.price == last:
            continue
        x, y = frame.x(point.at), frame.y(point.price)
        path += f"H{x}V{y}" if path else f"M{x} {y}"
        last = point.price
    if not path:
        return ""
    return f'<path class="l" stroke="{colour}" d="{path}H{frame.x(frame.until)}"/>'


def _figures(frame: Frame, lines: Sequence[Line], prices: Sequence[Decimal]) -> Iterator[str]:
    if len(lines) > 1:
        for number, line in enumerate(lines):
            colour = COLOURS[number % len(COLOURS)]
            x, top = LEFT + (number % 3) * 210, TOP + 4 + (number // 3) * 14
            yield f'<rect x="{x}" y="{top}" width="10" height="8" fill="{colour}"/>'
            yield _text(x + 14, top + 8, line.label[:30])
    elif prices:
        average = sum(prices, Decimal(0)) / len(prices)
        y = frame.y(average)
        yield f'<line class="a" x1="{LEFT}" x2="{frame.width - RIGHT}" y1="{y}" y2="{y}"/>'
        cent = Decimal("0.01")
        figures = (("min", min(prices)), ("avg", average), ("max", max(prices)))
        texts = (f"{name} {plain(value.quantize(cent))}" for name, value in figures)
        yield _text(frame.width - RIGHT, 18, " · ".join(texts), "end")


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x}" y="{y}" text-anchor="{anchor}">{_safe(text)}</text>'


def _safe(text: str) -> str:
    """XML holds no control characters, escaped or not."""
    printable = "".join(one if is_xml(one) else " " for one in text)
    return escape(printable.encode("utf-8", "replace").decode())
