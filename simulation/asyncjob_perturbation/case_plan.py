"""What a run does next, and when it has to stop: what cannot end in time is not begun. Pure."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob_perturbation.plan import EXTRA_SECONDS, Case, Part, shuffled

Pair = tuple[str, Part]

_FIRST: Final = 5
"""Cases that each recording is followed by before the next, so that a budget has both."""

_GUESS_SECONDS: Final = 15.0
"""How long the first undisturbed run of all takes, as far as anybody knows."""


@dataclass(frozen=True, slots=True)
class Recording:
    """To be done: play a scenario undisturbed and write down the requests of a part."""

    pair: Pair


class CasePlan:
    """Undisturbed runs and cases in the order in which they are begun.

    Each undisturbed run is followed by a few of its cases; when all have been recorded, the others
    come in turns. Nothing is begun that by what was measured so far ends after `end_at`.
    """

    def __init__(self, pairs: Sequence[Pair], seed: int, end_at: float) -> None:
        self._end_at = end_at
        self._seed = seed
        self._unrecorded = deque(pairs)
        self._first: deque[Case] = deque()
        self._others: deque[deque[Case]] = deque()
        self._undisturbed: dict[Pair, float] = {}
        self._longest: dict[tuple[str, str], float] = {}

    def add(self, pair: Pair, cases: Iterable[Case], seconds: float) -> None:
        """Note what is to be done with an undisturbed run, which took so long."""
        self._undisturbed[pair] = seconds
        order = deque(shuffled(list(cases), self._seed))
        self._first += [order.popleft() for _ in range(min(_FIRST, len(order)))]
        self._others.append(order)

    def again(self, item: Recording | Case) -> None:
        """Have it come once more."""
        if isinstance(item, Recording):
            self._unrecorded.append(item.pair)
        else:
            self._first.append(item)

    def took(self, case: Case, seconds: float) -> None:
        """Note how long a case has taken."""
        kind = (case.scenario, case.when)
        self._longest[kind] = max(self._longest.get(kind, 0.0), seconds)

    def next(self, now: float) -> Recording | Case | None:
        """Return what is begun now, if there is something that ends in time."""
        left = self._end_at - now
        if case := _take(self._first, lambda case: self._seconds(case) <= left):
            return case
        if self._unrecorded and self._recording_seconds() <= left:
            return Recording(self._unrecorded.popleft())
        for _ in range(len(self._others)):
            cases = self._others.popleft()
            case = _take(cases, lambda case: self._seconds(case) <= left)
            if cases:
                self._others.append(cases)
            if case:
                return case
        return None

    def _seconds(self, case: Case) -> float:
        undisturbed = self._undisturbed[case.scenario, case.part]
        measured = self._longest.get((case.scenario, case.when), 0.0)
        return max(measured, undisturbed + EXTRA_SECONDS[case.when])

    def _recording_seconds(self) -> float:
        """Return what an undisturbed run and one case after it take."""
        return 2 * max(self._undisturbed.values(), default=_GUESS_SECONDS)


def turns(scenarios: Sequence[str], parts: Sequence[Part], seed: int) -> list[Pair]:
    """Return all pairs, by chance, but every scenario before the next part of one."""
    dice = random.Random(seed)
    order = dice.sample(scenarios, len(scenarios))
    their_parts = {scenario: dice.sample(parts, len(parts)) for scenario in order}
    return [
        (scenario, their_parts[scenario][turn]) for turn in range(len(parts)) for scenario in order
    ]


def _take(cases: deque[Case], fits: Callable[[Case], bool]) -> Case | None:
    for case in cases:
        if fits(case):
            cases.remove(case)
            return case
    return None
