"""What the handlers did, as their trace tells it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from asyncjob.json_types import JsonObject, integer, text

Attempt = tuple[str, int]
"""Name of a job, and number of the attempt."""


@dataclass(slots=True)
class HandlerTrace:
    """The lines of all workers, counted. Times are monotonic seconds."""

    entries: Counter[Attempt] = field(default_factory=Counter)
    effects: Counter[Attempt] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """By job: attempts that failed because they were asked to."""

    first_entry: dict[str, float] = field(default_factory=dict)

    def add(self, line: JsonObject) -> None:
        """Take one line."""
        name = text(line, "name")
        attempt = (name, integer(line, "attempt"))
        match text(line, "event"):
            case "entered":
                self.entries[attempt] += 1
                at = line["at"]
                assert isinstance(at, float)
                self.first_entry[name] = min(at, self.first_entry.get(name, at))
            case "effect":
                self.effects[attempt] += 1
            case "failed":
                self.failures[name] += 1
            case _:
                pass

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
        """Handlers that ran for a job beyond its first, but for the retries that it asked for."""
        jobs = {name for name, _ in self.entries}
        return self.entries.total() - len(jobs) - self.failures.total()
