"""What a change of phase is written from, of jobs that may have to be taken from a worker soon.

A write adds to the history, which views do not keep. With it at hand a thousand jobs of a dead
worker cost one request each to take away, and one to queue again, where a read before each write
would double that. Nothing is decided by it, and each write holds for one version of the job alone.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from asyncjob.deep_json import TruncatedObject
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase

MAX_STATUSES: Final = 5_000
"""Jobs whose history is kept, at 1 KiB or so each; of others it is read when it is needed."""

_KEPT_PHASES: Final = frozenset({Phase.RUNNING, Phase.RETRYING})


class _Kept(NamedTuple):
    """What there is of it in one version of a job; None where it is absent."""

    version: str
    traceparent: Json
    history: Json
    history_omitted: Json


class StatusCache:
    """Parts of the newest known version of jobs that run or wait to be retried, by UID."""

    def __init__(self, limit: int = MAX_STATUSES) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, job: JobView, obj: JsonObject) -> None:
        """Keep what belongs to this version of the job, and forget that of another."""
        self._kept.pop(job.uid, None)
        if job.phase not in _KEPT_PHASES or isinstance(obj, TruncatedObject):
            return
        status = child(obj, "status")
        self._kept[job.uid] = _Kept(
            job.resource_version,
            child(obj, "spec").get("traceparent"),
            status.get("history"),
            status.get("historyOmitted"),
        )
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def get(self, job: JobView) -> JsonObject | None:
        """Return the parts of this very version of the job, None if they are not at hand."""
        kept = self._kept.get(job.uid)
        if kept is None or kept.version != job.resource_version:
            return None
        return {
            "spec": _present(traceparent=kept.traceparent),
            "status": _present(history=kept.history, historyOmitted=kept.history_omitted),
        }

    def forget(self, uid: str) -> None:
        """Forget a job: it is read before it is written next."""
        self._kept.pop(uid, None)


def _present(**fields: Json) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
