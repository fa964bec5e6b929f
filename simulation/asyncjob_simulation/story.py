"""What happened in a simulation: a digest of all of it, and a story that people can read."""

import hashlib
from collections import Counter
from dataclasses import dataclass

import orjson

from asyncjob_simulation.event_loop import FIRST_MOMENT, SimulationLoop


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened; `about` are the objects that it has to do with."""

    time: float
    actor: str
    words: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.time:10.3f}  {self.actor:<22} {self.words}"


class Recorder:
    """Takes down what happens; lines are kept only where a story is to be told."""

    def __init__(self, loop: SimulationLoop, *, keeps_lines: bool = False) -> None:
        self._loop = loop
        self._digest = hashlib.sha256()
        self.keeps_lines = keeps_lines
        self.entries: list[Entry] = []
        self.counts: Counter[str] = Counter()

    def note(self, actor: str, words: str, about: str = "") -> None:
        """Take down what an actor did, or what was done to it."""
        now = self._loop.time() - FIRST_MOMENT
        self._digest.update(f"{now!r} {actor} {words}\n".encode())
        if self.keeps_lines:
            self.entries.append(Entry(now, actor, words, about))

    def remark(self, actor: str, words: str) -> None:
        """Take down what is for readers only, such as a line of a log."""
        if self.keeps_lines:
            now = self._loop.time() - FIRST_MOMENT
            self.entries.append(Entry(now, actor, words, ""))

    def name_in(self, answer: bytes) -> str:
        """Return the name of the object that was created, where lines are kept."""
        if not self.keeps_lines:
            return ""
        return str((orjson.loads(answer).get("metadata") or {}).get("name", ""))

    def hash_bytes(self, data: bytes) -> None:
        """Let bytes count in the digest."""
        self._digest.update(data)

    def count(self, what: str) -> None:
        """Count something that should happen in some of many simulations."""
        self.counts[what] += 1

    @property
    def digest(self) -> str:
        """What is the same where all that happened is the same."""
        return self._digest.hexdigest()
