"""The picture of all transitions, drawn from their table: phases have a place, arrows follow."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS, Actor

Point = tuple[float, float]

PLACES: Final[Mapping[Phase, Point]] = {
    Phase.CANCELLED: (400, 40),
    Phase.SCHEDULED: (80, 130),
    Phase.SUCCEEDED: (640, 140),
    Phase.QUEUED: (270, 230),
    Phase.RUNNING: (530, 230),
    Phase.PENDING: (80, 330),
    Phase.RETRYING: (400, 360),
    Phase.DEAD_LETTER: (710, 400),
}
"""The middle of each phase's box."""

BENDS: Final = {
    (Phase.DEAD_LETTER, Phase.CANCELLED): 185.0,
    (Phase.PENDING, Phase.DEAD_LETTER): 62.0,
    (Phase.PENDING, Phase.CANCELLED): -30.0,
}
"""Arrows that have to go around a box: how far they bend to the right of their way."""

_WAITING: Final = "#4a5b66"
_COLOURS: Final = {
    Phase.RUNNING: "#3949ab",
    Phase.SUCCEEDED: "#00695c",
    Phase.DEAD_LETTER: "#b3261e",
}
_BY: Final = {
    frozenset({Actor.WORKER}): ("worker", "#00897b"),
    frozenset({Actor.OPERATOR}): ("operator", "#7d8794"),
    frozenset({Actor.OPERATOR, Actor.WORKER}): ("operator or worker", "#c77700"),
}
_HALF_WIDTH: Final = 58.0
_HALF_HEIGHT: Final = 19.0
_BEND: Final = 14.0
"""Of any other arrow, so that two in opposite directions lie beside each other."""


def lifecycle_picture() -> str:
    """Return the SVG: a box for each phase, an arrow for each transition, coloured by who may."""
    return "\n".join([_HEAD, *_markers(), *_arrows(), *_boxes(), *_legend(), "</svg>", ""])


_HEAD: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 790 500" role="img"'
    ' aria-labelledby="t" font-family="system-ui, sans-serif" font-size="15"'
    ' text-anchor="middle">\n<title id="t">The phases of a job and the transitions between'
    " them</title>"
)


def _markers() -> Iterator[str]:
    for number, (_, colour) in enumerate(_BY.values()):
        yield (
            f'<marker id="m{number}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="6"'
            f' markerHeight="6" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
        )


def _arrows() -> Iterator[str]:
    actors = list(_BY)
    for one in TRANSITIONS:
        number = actors.index(frozenset(one.actors))
        colour = _BY[actors[number]][1]
        bend = BENDS.get((one.source, one.target), _BEND)
        yield (
            f'<path d="{_way(PLACES[one.source], PLACES[one.target], bend)}" fill="none"'
            f' stroke="{colour}" stroke-width="2" marker-end="url(#m{number})">'
            f"<title>{one.source.value} to {one.target.value}</title></path>"
        )


def _way(source: Point, target: Point, bend: float) -> str:
    """Return a curve from border to border that bends to the right of its direction."""
    across, down = target[0] - source[0], target[1] - source[1]
    length = math.hypot(across, down)
    middle = (
        (source[0] + target[0]) / 2 - 2 * bend * down / length,
        (source[1] + target[1]) / 2 + 2 * bend * across / length,
    )
    begin, end = _border(source, middle), _border(target, middle)
    numbers = (f"{value:.0f}" for value in (*begin, *middle, *end))
    return "M{} {}Q{} {} {} {}".format(*numbers)


def _border(box: Point, towards: Point) -> Point:
    """Return where a line from the middle of a box leaves it."""
    across, down = towards[0] - box[0], towards[1] - box[1]
    part = min(
        (_HALF_WIDTH + 2) / abs(across) if across else math.inf,
        (_HALF_HEIGHT + 2) / abs(down) if down else math.inf,
    )
    return box[0] + across * part, box[1] + down * part


def _boxes() -> Iterator[str]:
    for phase, (x, y) in PLACES.items():
        yield (
            f'<rect x="{x - _HALF_WIDTH:g}" y="{y - _HALF_HEIGHT:g}" width="{2 * _HALF_WIDTH:g}"'
            f' height="{2 * _HALF_HEIGHT:g}" rx="8" fill="{_COLOURS.get(phase, _WAITING)}"/>'
            f'<text x="{x:g}" y="{y + 5:g}" fill="#fff">{phase.value}</text>'
        )


def _legend() -> Iterator[str]:
    for number, (name, colour) in enumerate(_BY.values()):
        y = 442 + 20 * number
        yield (
            f'<path d="M24 {y}H64" stroke="{colour}" stroke-width="3"'
            f' marker-end="url(#m{number})"/><text x="74" y="{y + 5}" fill="{colour}"'
            f' text-anchor="start">{name}</text>'
        )
