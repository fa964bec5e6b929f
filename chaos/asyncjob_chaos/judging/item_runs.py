"""Whether each item of an array was run, and what a kill of its worker explains of second runs.

Items note when they begin and when they are done, in one file each for all workers. Of a process
that nobody has killed no item runs again; of one that was killed at most those that a worker runs
in the seconds that a checkpoint may be behind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from asyncjob_bench.stats.item_notes import NANOSECONDS, ItemNote

BEHIND_SECONDS: Final = 2.0
"""How far a checkpoint may be behind: what arrays promise of a worker's death."""

SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class WorkerKill:
    """A worker's process that was killed."""

    pid: int
    unwritten: float = 0.0
    """Seconds before it in which the API server took no checkpoint."""


@dataclass(slots=True)
class ItemVerdict:
    """What became of the items of one array."""

    done: int = 0
    repeated: int = 0
    """Runs beyond the first of each item."""

    worst: float = 0.0
    """The most that one kill had run again, in seconds of that worker's busiest one."""

    wrong: list[str] = field(default_factory=list)
    """In words, what is not as it should be."""


def judge_items(
    count: int, began: Sequence[ItemNote], done: Sequence[ItemNote], kills: Iterable[WorkerKill]
) -> ItemVerdict:
    """Return the verdict on an array of so many items that has succeeded."""
    runs = Counter(note.item for note in began)
    verdict = ItemVerdict(len({note.item for note in done}), len(began) - len(runs))
    verdict.wrong += _missing(count, {note.item for note in done})
    again = _runs_again(began)
    killed = {kill.pid: kill for kill in kills}
    for pid, items in again.items():
        if pid not in killed:
            verdict.wrong.append(f"{_named(items)} ran again, and nobody killed process {pid}")
            continue
        most = busiest_second([note for note in began if note.pid == pid])
        seconds = len(items) / most
        allowed = BEHIND_SECONDS + killed[pid].unwritten
        verdict.worst = max(verdict.worst, seconds - killed[pid].unwritten)
        if seconds > allowed:
            verdict.wrong.append(
                f"{len(items)} items of process {pid} ran again after it was killed, and "
                f"{allowed * most:.0f} are explained: {most} in a second, for {allowed:.1f} s"
            )
    return verdict


def _missing(count: int, done: set[int]) -> Iterator[str]:
    if missing := sorted(set(range(count)) - done):
        yield f"no handler has run {_named(missing)} to the end"
    if unknown := sorted(done - set(range(count))):
        yield f"there are {count} items, and {_named(unknown)} ran"


def _runs_again(began: Sequence[ItemNote]) -> dict[int, list[int]]:
    """Return by process the items that it began, and that began once more after that."""
    newest: dict[int, int] = {}
    again: dict[int, list[int]] = {}
    for note in sorted(began, key=lambda one: one.began):
        if note.item in newest:
            again.setdefault(newest[note.item], []).append(note.item)
        newest[note.item] = note.pid
    return again


def busiest_second(began: Sequence[ItemNote]) -> int:
    """Return how many items began at most within one second."""
    times = sorted(note.began for note in began)
    most = first = 0
    for last, at in enumerate(times, 1):
        while at - times[first] >= NANOSECONDS:
            first += 1
        most = max(most, last - first)
    return most


def _named(items: Sequence[int]) -> str:
    some = ", ".join(str(item) for item in items[:SHOWN])
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return f"items {some}{more}" if len(items) > 1 else f"item {some}"
