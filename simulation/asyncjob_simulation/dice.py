"""What the seed decides: each question has a name, and the same answer whatever else was asked.

So one fault can be left out, and all others still come where they came.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

T = TypeVar("T")

_RANGE: Final = 2.0**53


class Dice:
    """The answers of one seed."""

    def __init__(self, seed: int) -> None:
        self._key = f"{seed}".encode()

    def fraction(self, name: str) -> float:
        """Return a number uniform in [0, 1)."""
        digest = blake2b(name.encode(), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "big") >> 11) / _RANGE

    def between(self, name: str, low: float, high: float) -> float:
        """Return a number uniform between two."""
        return low + (high - low) * self.fraction(name)

    def number(self, name: str, low: int, high: int) -> int:
        """Return a whole number from low to high, both included."""
        return low + int(self.fraction(name) * (high - low + 1))

    def choice(self, name: str, options: Sequence[T]) -> T:
        """Return one of several."""
        return options[int(self.fraction(name) * len(options))]

    def happens(self, name: str, chance: float) -> bool:
        """Return whether something of this chance happens."""
        return self.fraction(name) < chance


class FaultChooser:
    """Which faults of a seed happen: all, or in a shorter run only some of them."""

    def __init__(self, dice: Dice, allowed: frozenset[str] | None = None) -> None:
        self.dice = dice
        self._allowed = allowed
        self.injected: dict[str, str] = {}
        """What has happened, by the fault's name."""

    def wants(self, name: str, chance: float, words: str) -> bool:
        """Return whether a fault is to happen, and remember that it does."""
        if chance <= 0 or not self.dice.happens(name, chance):
            return False
        if self._allowed is not None and name not in self._allowed:
            return False
        self.injected[name] = words
        return True
