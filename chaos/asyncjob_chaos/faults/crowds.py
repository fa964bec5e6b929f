"""Too many jobs at once, and jobs that kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from asyncjob.models.base import RetryPolicy
from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.handlers import POISON
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.verdict import ANY_END
from asyncjob_chaos.planes import PlaneNeeds
from asyncjob_chaos.target import FaultTarget, Setup

PILLS: Final = 3
CRASHES: Final = 2
DEAD_SECONDS: Final = 180.0


def _burst(target: FaultTarget) -> None:
    target.load.submit_burst(target.burst)
    target.signs[Sign.BURST] += 1


@contextmanager
def _poison(target: FaultTarget) -> Iterator[None]:
    policy = RetryPolicy(max_crashes=CRASHES, initial_delay_seconds=0.5, max_delay_seconds=1)
    for _ in range(PILLS):
        fields = {"type": POISON, "payload": {"seconds": 0.3}, "retry_policy": policy}
        target.load.submit(fields, ANY_END)
    yield
    target.until(
        lambda: target.dead_letters() >= PILLS, "the pills to be dead letters", DEAD_SECONDS
    )
    target.signs[Sign.DEAD_LETTER] += target.dead_letters()


FAULTS: Final = (
    Fault(
        name="burst",
        does="50,000 jobs at once (2,000 in the short form)",
        shows=(Sign.BURST,),
        act=at_once(_burst),
        hold=0.0,
        setup=Setup(plane=PlaneNeeds(alone=True, audit_log=False)),
        loads=("plain",),
    ),
    Fault(
        name="poison",
        does="among the others are jobs that kill the worker that runs them",
        shows=(Sign.DEAD_LETTER,),
        act=_poison,
        hold=1.0,
    ),
)
