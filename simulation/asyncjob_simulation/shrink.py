"""A failing seed made small: the fewest faults that it still fails with, told as a story."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asyncjob_simulation.life import Options, Outcome, simulate
from asyncjob_simulation.story import Entry

MAX_TOLD = 120
"""Lines of a story that are told."""

_ALWAYS_TOLD = ("FAULT", "INVARIANT")


@dataclass(frozen=True)
class Shrunk:
    """A failure, and the faults that are needed for it."""

    outcome: Outcome
    tries: int


def shrink(
    found: Outcome, seconds: float, clock: Callable[[], float] = time.process_time
) -> Shrunk:
    """Leave out what faults can be left out in so much CPU time, and tell what is left.

    Parts of the faults are left out, ever smaller ones, for as long as the same promise is broken.
    """
    promise, end = found.violations[0].promise, clock() + seconds
    tries, size = 0, max(1, len(found.faults) // 2)

    def fails(faults: Sequence[str]) -> Outcome | None:
        nonlocal tries
        tries += 1
        outcome = simulate(found.seed, Options(allowed=frozenset(faults), profile=found.profile))
        broken = {violation.promise for violation in outcome.violations}
        return outcome if promise in broken else None

    needed = list(found.faults) if fails(()) is None else []
    while needed and clock() < end:
        left_out = False
        for start in range(0, len(needed), size):
            rest = needed[:start] + needed[start + size :]
            if clock() >= end:
                break
            smaller = fails(rest)
            if smaller is not None:
                needed, left_out = [one for one in rest if one in smaller.faults], True
                break
        if not left_out:
            if size == 1:
                break
            size = max(1, size // 2)
        size = min(size, max(1, len(needed)))
    options = Options(allowed=frozenset(needed), tells=True, profile=found.profile)
    return Shrunk(simulate(found.seed, options), tries)


def tell(outcome: Outcome) -> list[str]:
    """Return the story of a failure: the faults, and what was done with what it is about."""
    about = {violation.about for violation in outcome.violations[:1]}
    told = [entry for entry in outcome.entries if _is_told(entry, about)]
    lines = [str(entry) for entry in told]
    if len(lines) > MAX_TOLD:
        left_out = len(lines) - MAX_TOLD
        half = MAX_TOLD // 2
        lines = [*lines[:half], f"{'':10}  … {left_out} lines …", *lines[-half:]]
    return lines


def _is_told(entry: Entry, about: set[str]) -> bool:
    if entry.actor in _ALWAYS_TOLD or (entry.actor == "kubelet" and "status" not in entry.words):
        return True
    return any(name in entry.about.split("/") or name in entry.words for name in about)
