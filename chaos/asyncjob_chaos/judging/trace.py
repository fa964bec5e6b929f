"""What the handlers did, as their trace tells it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from asyncjob.json_types import JsonObject, integer, text
from asyncjob_chaos.judging.wait_trace import WaitTrace

Attempt = tuple[str, int]
"""Name of a job, and number of the attempt; one that ended by a park counts, too."""


@dataclass(slots=True)
class HandlerTrace:
    """The lines of all workers, counted. Times are monotonic seconds."""

    entries: Counter[Attempt] = field(default_factory=Counter)
    effects: Counter[Attempt] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """By job: attempts that failed because they were asked to."""

    first_entry: dict[str, float] = field(default_factory=dict)
    first_effect: dict[str, float] = field(default_factory=dict)
    stretches: set[tuple[str, int]] = field(default_factory=set)
    """Jobs that were entered, each with how often it had been parked before."""

    waits: WaitTrace = field(default_factory=WaitTrace)

    def add(self, line: JsonObject) -> None:
        """Take one line."""
        name = text(line, "name")
        attempt = (name, integer(line, "attempt"))
        match text(line, "event"):
            case "entered":
                self.entries[attempt] += 1
                self.stretches.add((name, integer(line, "parks")))
                _note_first(self.first_entry, name, line)
            case "effect":
                self.effects[attempt] += 1
                _note_first(self.first_effect, name, line)
            case "failed":
                self.failures[name] += 1
            case _:
                self.waits.add(line)

    @classmethod
    def of(cls, lines: Iterable[JsonObject]) -> "HandlerTrace":
        """Return what the lines tell."""
        trace = cls()
        for line in lines:
            trace.add(line)
        return trace

    @property
    def effects_by_job(self) -> Counter[str]:
        """How often each job took effect."""
        found: Counter[str] = Counter()
        for (name, _), count in self.effects.items():
            found[name] += count
        return found

    @property
    def repeated(self) -> int:
        """Handlers that ran for a job beyond its first, but for the retries that it asked for.

        After each park one runs that is no repetition. Of arrays the items count.
        """
        handlers = self.entries.total() - len(self.stretches) - self.failures.total()
        return handlers + self.waits.repeated_items


def _note_first(times: dict[str, float], name: str, line: JsonObject) -> None:
    at = line["at"]
    assert isinstance(at, float)
    times[name] = min(at, times.get(name, at))
