"""What jobs with steps, waits and children did, and items of arrays, as their trace tells it."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from asyncjob.json_types import JsonObject, integer, items, text

StepKey = tuple[str, str]
"""Name of a job, and key of a step."""


class ItemRun(NamedTuple):
    """One try of an item that took effect: in which attempt of which chunk."""

    array: str
    item: int
    chunk: str
    attempt: int


@dataclass(slots=True)
class WaitTrace:
    """The lines of steps, waits and items, counted."""

    begun: Counter[StepKey] = field(default_factory=Counter)
    """How often the body of a step was begun."""

    taken: defaultdict[StepKey, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The attempts in which it took effect."""

    kept: defaultdict[StepKey, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The tokens that handlers got as the result of a step."""

    received: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By job: what signals said."""

    late: set[str] = field(default_factory=set)
    """Jobs whose signal had not come in time."""

    gathered: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    """By parent: when it first went on after its children, and their names."""

    items: Counter[ItemRun] = field(default_factory=Counter)

    def add(self, line: JsonObject) -> None:
        """Take one line."""
        name, attempt = text(line, "name"), integer(line, "attempt")
        step = (name, text(line, "step"))
        match text(line, "event"):
            case "begun":
                self.begun[step] += 1
            case "taken":
                self.taken[step].append(attempt)
            case "kept":
                self.kept[step].add(text(line, "token"))
            case "received":
                self.received[name].add(integer(line, "value"))
            case "late":
                self.late.add(name)
            case "gathered":
                at = line["at"]
                assert isinstance(at, float)
                self.gathered.setdefault(name, (at, frozenset(map(str, items(line, "children")))))
            case "item":
                run = ItemRun(text(line, "array"), integer(line, "item"), name, attempt)
                self.items[run] += 1
            case _:
                pass

    @property
    def repeated_items(self) -> int:
        """How often items took effect beyond their first time."""
        return self.items.total() - len({(run.array, run.item) for run in self.items})

    @property
    def steps_begun_again(self) -> int:
        """How often bodies of steps were begun beyond their first time."""
        return self.begun.total() - len(self.begun)
