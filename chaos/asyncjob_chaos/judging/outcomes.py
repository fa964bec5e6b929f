"""What became of each job, as the recorded history tells it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob.audit.history_file import HistoryLine
from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.names import ARRAY_LABEL, JOBS, PARENT_LABEL
from asyncjob_chaos.judging.signs import Sign

ENDS: Final = frozenset({"Succeeded", "Cancelled", "DeadLetter"})
WAIT_OVER: Final = "WaitOver"
SLEEP: Final = "Sleep"
WOKEN: Final[Mapping[str, Sign]] = {
    SLEEP: Sign.WOKEN_BY_TIME,
    "Signal": Sign.WOKEN_BY_SIGNAL,
    "Children": Sign.WOKEN_BY_CHILDREN,
}
"""By the kind of wait."""


@dataclass(slots=True)
class JobOutcome:
    """The newest version of a job, as far as it is judged."""

    phase: str
    attempt: int
    retries: int
    interrupted: int
    """Attempts that ended without a word of the handler's: crashes and releases."""

    uid: str
    parent: str
    """UID of the job that submitted it; empty without one."""

    array: str
    """UID of the array that it is a chunk of; empty if it is none."""

    parks: int
    waiting: tuple[str, ...]
    """What kinds of waits it is parked for."""

    steps: Mapping[str, int]
    """The steps whose results it has, and the attempts that took them."""

    sleeps: Mapping[str, str]
    """The sleeps that it has begun, and when each is over."""

    signals: frozenset[str]
    """Names of the signals that it was sent."""

    ended: str = ""
    """When it ended, as the recorder saw it."""

    successes: int = 0
    """How many attempts have brought it to Succeeded."""


def read_outcome(obj: JsonObject) -> JobOutcome:
    """Return what one version of a job tells."""
    meta, status = child(obj, "metadata"), child(obj, "status")
    labels, steps, waits = child(meta, "labels"), child(status, "steps"), child(status, "waits")
    sleeps = {key for key in waits if text(child(waits, key), "kind") == SLEEP}
    return JobOutcome(
        text(status, "phase"),
        integer(status, "attempt"),
        integer(status, "retries"),
        integer(status, "crashes") + integer(status, "releases"),
        uid=text(meta, "uid"),
        parent=text(labels, PARENT_LABEL),
        array=text(labels, ARRAY_LABEL),
        parks=integer(status, "parks"),
        waiting=tuple(text(as_object(one), "kind") for one in items(status, "waiting")),
        steps={key: integer(child(steps, key), "attempt") for key in steps},
        sleeps={key: text(child(waits, key), "until") for key in sleeps},
        signals=frozenset(child(child(obj, "spec"), "signals")),
    )


@dataclass(slots=True)
class Outcomes:
    """All jobs of a history, by name."""

    jobs: dict[str, JobOutcome] = field(default_factory=dict)
    signs: Counter[Sign] = field(default_factory=Counter)
    lost_records: list[str] = field(default_factory=list)
    """In words, stored results of steps that are gone, or of another attempt by now, and sleeps
    that have another end."""

    _listed: set[str] = field(default_factory=set)

    def seen(self, lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Pass the lines on, and take from them what is needed: a history is read once."""
        for line in lines:
            if text(line, "resource") == JOBS:
                self._take(line)
            yield line

    def _take(self, line: JsonObject) -> None:
        match text(line, "line"):
            case HistoryLine.VERSION:
                self._take_version(line)
            case HistoryLine.LIST:
                self._listed.clear()
            case HistoryLine.LIST_END:
                self._forget_chunks_not_listed()
            case _:
                pass

    def _take_version(self, line: JsonObject) -> None:
        obj, event = child(line, "object"), text(line, "event")
        name, now = text(child(obj, "metadata"), "name"), read_outcome(obj)
        if event == "LISTED":
            self._listed.add(name)
        was = self.jobs.get(name)
        now.successes = was.successes if was else 0
        if now.phase in ENDS:
            now.ended = was.ended if was and was.ended else text(line, "time")
        if now.phase == "Succeeded" and (was is None or was.phase != "Succeeded"):
            now.successes += 1
        if was is not None:
            self._compare(name, was, now, text(child(obj, "status"), "reason"))
        if event != "DELETED":
            self.jobs[name] = now
        elif now.phase not in ENDS:
            # Not ours to forgive: who was told that it is accepted misses it in what is left, and
            # the audit judges who has deleted it.
            self.jobs.pop(name, None)

    def _compare(self, name: str, was: JobOutcome, now: JobOutcome, reason: str) -> None:
        """Note what has happened between two versions of a job."""
        gone = [key for key, attempt in was.steps.items() if now.steps.get(key) != attempt]
        self.lost_records += [f"{name}: the stored result of {key} is gone" for key in gone]
        moved = [key for key, until in was.sleeps.items() if now.sleeps.get(key) != until]
        self.lost_records += [f"{name}: {key} has another end than it had" for key in moved]
        self.signs[Sign.PARKED] += now.parks > was.parks
        if was.waiting and now.phase == "Queued" and reason == WAIT_OVER:
            for kind in was.waiting:
                # A wait for a signal may also end by its limit.
                if kind in WOKEN and (kind != "Signal" or now.signals):
                    self.signs[WOKEN[kind]] += 1
        if now.interrupted > was.interrupted:
            self.signs[Sign.INTERRUPTED_BETWEEN_STEPS] += bool(now.steps)
            self.signs[Sign.CHUNK_INTERRUPTED] += bool(now.array)

    def _forget_chunks_not_listed(self) -> None:
        """Forget chunks that were counted and deleted while nothing was seen."""
        gone = [name for name, job in self.jobs.items() if job.array and name not in self._listed]
        for name in gone:
            if self.jobs[name].phase not in ENDS:
                del self.jobs[name]
