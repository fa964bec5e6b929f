"""Tables of where operator, worker and API server spend their time, from CPU profiles."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from asyncjob_bench.stats.results import Row

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


API_SERVER_ACTIVITIES: Final = (
    ("carries out writes", ("finishRequest.func1",)),
    ("decodes JSON, of requests and of etcd", ("versioning.(*codec).Decode",)),
    ("of that: defaults and prunes by the schema", ("unstructuredSchemaCoercer).apply",)),
    ("encodes JSON, for etcd and answers", ("versioning.(*codec).doEncode",)),
    ("applies patches (with their share of coding)", ("patcher).applyPatch",)),
    ("validates by the schema, its rules in CEL included", ("statusStrategy.ValidateUpdate",)),
    ("asks the policies", ("policy/validating.(*Plugin).Validate",)),
    ("keeps managedFields", ("FieldManager).UpdateNoErrors",)),
    ("talks with etcd", ("grpc.(*ClientConn).Invoke",)),
    ("tells watchers", ("WatchServer).HandleHTTP", "etcd3.(*watchChan).transform")),
    ("collects garbage", ("runtime.gcBgMarkWorker", "runtime.gcAssistAlloc")),
)
"""What is said, and the ends of the names of the functions whose shares are added for it."""

_COLUMNS: Final = 6


def api_server_shares(top: str) -> list[Row]:
    """Return the rows of a table, from what `go tool pprof -top -cum` printed.

    What is not found in it, as under another name in a later version, is left out.
    """
    found = dict(_pprof_lines(top.splitlines()))
    said = (
        (what, [_share(found, name) for name in names]) for what, names in API_SERVER_ACTIVITIES
    )
    return [{"what": what, "share %": round(sum(them), 2)} for what, them in said if all(them)]


def _share(found: dict[str, float], end: str) -> float:
    return max((share for name, share in found.items() if name.endswith(end)), default=0.0)


def _pprof_lines(lines: Iterable[str]) -> Iterable[tuple[str, float]]:
    """Yield functions with their shares in percent, callees included."""
    for line in lines:
        cells = line.split(maxsplit=_COLUMNS - 1)
        if len(cells) == _COLUMNS and cells[4].endswith("%"):
            yield cells[5].removesuffix(" (inline)"), float(cells[4].removesuffix("%"))
