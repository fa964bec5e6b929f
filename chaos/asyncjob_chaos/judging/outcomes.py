"""What became of each job, as the recorded history tells it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from asyncjob.audit.history_file import HistoryLine
from asyncjob.json_types import JsonObject, child, integer, text
from asyncjob.names import JOBS

ENDS: Final = frozenset({"Succeeded", "Cancelled", "DeadLetter"})


@dataclass(slots=True)
class JobOutcome:
    """The newest version of a job, as far as it is judged."""

    phase: str
    attempt: int
    retries: int
    interrupted: int
    """Attempts that ended without a word of the handler's: crashes and releases."""

    ended: str = ""
    """When it ended, as the recorder saw it."""

    successes: int = 0
    """How many attempts have brought it to Succeeded."""


@dataclass(slots=True)
class Outcomes:
    """All jobs of a history, by name."""

    jobs: dict[str, JobOutcome] = field(default_factory=dict)

    def seen(self, lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Pass the lines on, and take from them what is needed: a history is read once."""
        for line in lines:
            if text(line, "line") == HistoryLine.VERSION and text(line, "resource") == JOBS:
                self._take(line)
            yield line

    def _take(self, line: JsonObject) -> None:
        obj = child(line, "object")
        name, status = text(child(obj, "metadata"), "name"), child(obj, "status")
        now = JobOutcome(
            text(status, "phase"),
            integer(status, "attempt"),
            integer(status, "retries"),
            integer(status, "crashes") + integer(status, "releases"),
        )
        was = self.jobs.get(name)
        now.successes = was.successes if was else 0
        if now.phase in ENDS:
            now.ended = was.ended if was and was.ended else text(line, "time")
        if now.phase == "Succeeded" and (was is None or was.phase != "Succeeded"):
            now.successes += 1
        if text(line, "event") != "DELETED":
            self.jobs[name] = now
        elif now.phase not in ENDS:
            # Not ours to forgive: who was told that it is accepted misses it in what is left, and
            # the audit judges who has deleted it.
            self.jobs.pop(name, None)
