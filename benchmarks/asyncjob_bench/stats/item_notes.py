"""What items have noted as they began, and how much of it was work done again."""

from collections.abc import Sequence
from dataclasses import dataclass

from asyncjob_bench.errors import WrongOutcomeError

NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class ItemNote:
    """An item that began: in which process, which, and when, in nanoseconds."""

    pid: int
    item: int
    began: int


def read_notes(text: str) -> list[ItemNote]:
    """Return the notes in the order in which they were made; a last line may be cut off."""
    whole = text[: text.rfind("\n") + 1]
    return [ItemNote(*map(int, line.split())) for line in whole.splitlines()]


def repeated_seconds(notes: Sequence[ItemNote], pid: int, killed: int, window: float) -> float:
    """Return the items of a killed process that began again, over its items a second.

    The rate is that of its last seconds, `window`. Raises WrongOutcomeError if it had none.
    """
    its_own = [note for note in notes if note.pid == pid]
    runs: dict[int, int] = {}
    for note in notes:
        runs[note.item] = runs.get(note.item, 0) + 1
    recent = sum(0 <= killed - note.began < window * NANOSECONDS for note in its_own)
    if not recent:
        raise WrongOutcomeError("the worker ran nothing before it was killed")
    repeated = sum(runs[item] > 1 for item in {note.item for note in its_own})
    return repeated / (recent / window)
