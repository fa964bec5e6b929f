"""From profiles of operator and worker to what they do with their time, in words."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from asyncjob_bench.reckoning.results import Row

Function = tuple[str, int, str]
"""File, line and name, as in `pstats.Stats.stats`; the file of what is written in C is `~`."""

Callers = Mapping[Function, tuple[int, int, float, float]]
Times = Mapping[Function, tuple[int, int, float, float, Callers]]
"""The same: calls, calls but recursive ones, own seconds, all seconds, and the same by caller."""

AREAS: Final = (
    ("sends and receives, TLS included", ("_ssl.", "/ssl.py", "_socket.", "/socket.py", "epoll")),
    ("codes JSON", ("orjson", "/json/")),
    ("speaks HTTP", ("/aiohttp/", "/yarl/", "/multidict/")),
    ("turns the event loop, uvloop's sockets included", ("uvloop", "/asyncio/", "/selectors.py")),
    ("kopf's own", ("/kopf/",)),
    ("what asyncjob does", ("/src/asyncjob",)),
)
"""What is said, and what the names of its functions and files hold; the first that fits."""

OTHER_AREA: Final = "all else"
C_CODE: Final = "~"


def area_shares(profiles: Mapping[str, Times]) -> list[Row]:
    """Return the rows of a table with a column for each program; a row's share is its own time."""
    found = {program: _seconds(times) for program, times in profiles.items()}
    return [
        {"what": what, **{f"{name} %": _percent(them, what) for name, them in found.items()}}
        for what in [*(area for area, _ in AREAS), OTHER_AREA]
    ]


def _percent(seconds: Mapping[str, float], what: str) -> float:
    return round(100 * seconds.get(what, 0.0) / max(sum(seconds.values()), 1e-9), 1)


def _seconds(times: Times) -> Mapping[str, float]:
    """Return the own time of each area; what is written in C and known to none is its caller's."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for function, (_, _, own, _, callers) in times.items():
        area = _area(function)
        if area is None and function[0] == C_CODE:
            for caller, (_, _, for_it, _) in callers.items():
                seconds[_area(caller) or OTHER_AREA] += for_it
        else:
            seconds[area or OTHER_AREA] += own
    return seconds


def _area(function: Function) -> str | None:
    file, _, name = function
    known = name if file == C_CODE else file
    return next((area for area, marks in AREAS if any(mark in known for mark in marks)), None)
