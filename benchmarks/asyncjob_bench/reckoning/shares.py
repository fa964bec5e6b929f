"""From the API server's profile to what it does with its time, in words."""

from collections.abc import Iterable
from typing import Final

from asyncjob_bench.reckoning.results import Row

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
