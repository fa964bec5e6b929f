"""Which cases there are, and which of them are run in a budget of time. Pure."""

import random
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob_perturbation.calls import Call, is_write


class Part(StrEnum):
    """A part of the system that is a process."""

    OPERATOR = "operator"
    WORKER = "worker"
    GATEWAY = "gateway"


class When(StrEnum):
    """What is done at a request, or at an event of a watch."""

    BEFORE = "before"
    """The part is killed before the API server gets the request."""

    AFTER = "after"
    """The part is killed when the API server has answered, and does not get the answer."""

    LOST = "lost"
    """The API server has answered, and the part, which lives on, does not get the answer."""

    MERGED = "merged"
    """The event is held back with what follows, and only the newest of each object is shown."""

    GAP = "gap"
    """The event and what follows are never shown: the watch ends with 410."""

    LATE = "late"
    """The event and what follows are shown later than a lease lasts."""

    STALE = "stale"
    """The part, which gets the answer, is moved to an API server that lags, and back later."""

    STALE_START = "stale-start"
    """The part is killed as by `after`, and starts again at the API server that lags."""


class At(StrEnum):
    """What a case is tied to."""

    WRITES = "writes"
    """Requests that may change something."""

    READS = "reads"
    """All other requests."""

    EVENTS = "events"
    """What watches show."""


KILLS: Final = (When.BEFORE, When.AFTER, When.STALE_START)
MOVES: Final = (When.STALE, When.STALE_START)
AT_CALLS: Final = (When.BEFORE, When.AFTER, When.LOST)
AT_WRITES: Final = MOVES
AT_EVENTS: Final = (When.MERGED, When.GAP, When.LATE)

LEASE_SECONDS: Final = 15
"""Of the jobs in all scenarios: with too little CPU time a worker claims none with short ones."""

HELD_SECONDS: Final = 1.5
"""How long events are held back that are then merged or lost."""

LATE_SECONDS: Final = LEASE_SECONDS + 3.0
"""How long events are late: for longer than a lease lasts."""

LAG_SECONDS: Final = LATE_SECONDS
"""How far behind the other API server is: also longer than a part takes to start there, where each
list takes 3 s, for which an API server waits for its watch cache before it asks etcd."""

STALE_SECONDS: Final = LAG_SECONDS + 6.0
"""How long a part stays there: what was when it came passes before its eyes, and some more."""

EXTRA_SECONDS: Final = {
    When.BEFORE: 3.0,
    When.AFTER: 3.0,
    When.LOST: 1.0,
    When.MERGED: HELD_SECONDS,
    When.GAP: HELD_SECONDS,
    When.LATE: LATE_SECONDS,
    When.STALE: STALE_SECONDS,
    When.STALE_START: STALE_SECONDS + 3.0,
}
"""What a case may take more than the undisturbed run, as long as no case has been measured."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is done to which part of which scenario, and where."""

    scenario: str
    part: Part
    number: int
    """Of the call among those of the undisturbed run, from 1."""

    call: Call
    when: When

    @property
    def at(self) -> At:
        """What it is tied to."""
        if self.when in AT_EVENTS:
            return At.EVENTS
        return At.WRITES if is_write(self.call) else At.READS

    def command(self) -> str:
        """Return what runs this case alone."""
        return (
            f"make perturb SCENARIO={self.scenario} PART={self.part} "
            f"CALL='{self.call}' WHEN={self.when}"
        )


class NoSuchCallError(Exception):
    """The undisturbed run has no such request."""


def all_cases(
    scenario: str, part: Part, calls: Sequence[Call], events: Sequence[Call] = ()
) -> list[Case]:
    """Return three cases for each call and for each event; events are numbered after calls.

    The answer of a watch is not lost apart: its events are. Each write has two more: after it there
    is something new that an API server that lags does not know of yet.
    """
    found = [
        Case(scenario, part, number, call, when)
        for number, call in enumerate(calls, start=1)
        for when in AT_CALLS
        if when in KILLS or not call.what.startswith("WATCH")
    ]
    found += [
        Case(scenario, part, number, call, when)
        for number, call in enumerate(calls, start=1)
        for when in AT_WRITES
        if is_write(call)
    ]
    found += [
        Case(scenario, part, number, event, when)
        for number, event in enumerate(events, start=len(calls) + 1)
        for when in AT_EVENTS
    ]
    return found


def selected(
    cases: Iterable[Case],
    call: str | None,
    when: Container[When] = tuple(When),
    at: Container[At] = tuple(At),
) -> list[Case]:
    """Return the cases of one call, given by number or by name; raises NoSuchCallError."""
    cases = list(cases)
    if call is None:
        found = cases
    elif call.isdigit():
        found = [case for case in cases if case.number == int(call)]
    else:
        found = [case for case in cases if str(case.call) == call]
    if not found:
        calls = "\n".join(dict.fromkeys(f"{case.number:4} {case.call}" for case in cases))
        raise NoSuchCallError(f"no call {call}; there are:\n{calls}")
    return [case for case in found if case.when in when and case.at in at]


def shuffled(cases: Sequence[Case], seed: int) -> list[Case]:
    """Return the cases in the order of a budget: by chance, three writes for each other request."""
    dice = random.Random(seed)
    writes = [case for case in cases if is_write(case.call)]
    reads = [case for case in cases if not is_write(case.call)]
    dice.shuffle(writes)
    dice.shuffle(reads)
    mixed: list[Case] = []
    while writes or reads:
        mixed += writes[:3]
        mixed += reads[:1]
        del writes[:3], reads[:1]
    return mixed
