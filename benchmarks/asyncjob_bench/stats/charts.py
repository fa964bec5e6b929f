"""Plots as SVG, drawn by hand: a few lines and bars are no reason for a plotting library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log10
from typing import Final

from asyncjob_bench.stats.tables import number

WIDTH: Final = 720
HEIGHT: Final = 320
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 36, 48
COLOURS: Final = ("#1b6ca8", "#d1495b", "#3a7d44", "#8f5aa8", "#c98b2b", "#4a4e69", "#2a9d8f")
GRID: Final = 4
NAMES: Final = 160
"""Room for the names of lines, to the right of them."""

NAME_HEIGHT: Final = 14.0

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values onto pixels; `logarithmic` where they span decades."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high, here = (self._scaled(x) for x in (self.low, self.high, value))
        share = (here - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def _scaled(self, value: float) -> float:
        return log10(max(value, 1e-9)) if self.logarithmic else value


def line_chart(title: str, series: Mapping[str, Points], *, x: str, y: str) -> str:
    """Return lines over a logarithmic x axis."""
    points = [point for line in series.values() for point in line]
    across = Axis(
        min(p[0] for p in points),
        max(p[0] for p in points),
        LEFT,
        WIDTH - RIGHT - NAMES,
        logarithmic=True,
    )
    up = Axis(0.0, max(p[1] for p in points) * 1.1 or 1.0, HEIGHT - BOTTOM, TOP)
    parts = [*_grid(up, y), *_ticks(across, sorted({p[0] for p in points}), x)]
    lines = [[(across.at(a), up.at(b)) for a, b in line] for line in series.values()]
    heights = spread_labels([line[-1][1] for line in lines])
    for index, (name, line, height) in enumerate(zip(series, lines, heights, strict=True)):
        parts += _line(index, line)
        parts.append(_name(index, name.removesuffix(f" {y}"), height))
    return _frame(title, parts)


def spread_labels(heights: Sequence[float]) -> list[float]:
    """Return where names go that belong at these heights: upwards, so that none covers another."""
    placed, above = list(heights), float("inf")
    for index in sorted(range(len(heights)), key=lambda it: -heights[it]):
        above = placed[index] = min(heights[index], above - NAME_HEIGHT)
    return placed


def bar_chart(title: str, bars: Mapping[str, float], *, unit: str) -> str:
    """Return bars, each with its number."""
    across = Axis(0.0, max(bars.values()) * 1.15 or 1.0, 180, WIDTH - RIGHT)
    height = (HEIGHT - TOP - 20) / len(bars)
    parts = []
    for index, (name, value) in enumerate(bars.items()):
        top = TOP + index * height
        middle, end = top + height / 2 + 4, across.at(value)
        parts += [
            f'<rect x="180" y="{top + 4:.1f}" width="{end - 180:.1f}" height="{height - 8:.1f}" '
            f'fill="{COLOURS[index % len(COLOURS)]}"/>',
            _text(172, middle, name, anchor="end"),
            _text(end + 6, middle, f"{number(value)} {unit}"),
        ]
    return _frame(title, parts)


def _grid(up: Axis, label: str) -> list[str]:
    parts = [_text(LEFT, TOP - 10, label)]
    for step in range(GRID + 1):
        value = up.low + (up.high - up.low) * step / GRID
        y = up.at(value)
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - RIGHT - NAMES}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, y + 4, number(value), anchor="end"))
    return parts


def _ticks(across: Axis, values: Sequence[float], label: str) -> list[str]:
    parts = [_text((LEFT + WIDTH - NAMES) / 2, HEIGHT - 8, label, anchor="middle")]
    parts += [_text(across.at(v), HEIGHT - BOTTOM + 18, number(v), anchor="middle") for v in values]
    return parts


def _line(index: int, points: Points) -> list[str]:
    colour = COLOURS[index % len(COLOURS)]
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}"/>', *dots]


def _name(index: int, name: str, height: float) -> str:
    colour = COLOURS[index % len(COLOURS)]
    return _text(WIDTH - RIGHT - NAMES + 12, height + 4, name, colour=colour)


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#333") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="{colour}">{escape(text)}</text>'


def _frame(title: str, parts: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            _text(WIDTH / 2, 16, title, anchor="middle"),
            *parts,
            "</svg>\n",
        ]
    )
