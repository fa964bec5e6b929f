"""Why nobody takes an array's chunks: its queue has no worker, or none with its item handler.

It is told after a while only: workers that start, or come and go, are no news.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob_operator.core.policies.dead_letters import listed_types
from asyncjob_operator.core.workers import UnservedType

NO_WORKER_SECONDS: Final = 30.0
"""For how long none of an array's chunks has run, and nobody could, before that is told."""


@dataclass(frozen=True, slots=True)
class IdleCheck:
    """What is told of an array none of whose chunks runs, and when to look again."""

    message: str = ""
    recheck_at: float | None = None


def check_workers(
    array: ArrayView,
    idle_since: float | None,
    unserved: UnservedType | None,
    workers: int | None,
    now: float,
) -> IdleCheck:
    """Return why no worker takes the chunks of an array, if none can.

    `unserved` is about the type of its chunks, `workers` is how many its queue has, None if that is
    not known; times are monotonic seconds.
    """
    if idle_since is None:
        return IdleCheck()
    told = array.state.message if array.state.reason is ArrayReason.NO_WORKER else ""
    if now < idle_since + NO_WORKER_SECONDS:
        # A replica that has just taken over keeps what the one before it has told.
        return IdleCheck(told, idle_since + NO_WORKER_SECONDS)
    if unserved is None:
        return IdleCheck("" if workers != 0 else f"queue {array.queue} has no worker")
    if now < unserved.since + NO_WORKER_SECONDS:
        return IdleCheck(told, unserved.since + NO_WORKER_SECONDS)
    return IdleCheck(_lacks_handler(array, unserved))


def _lacks_handler(array: ArrayView, unserved: UnservedType) -> str:
    stores = " that stores results" if array.results_folder else ""
    lacks = f"no live worker of queue {array.queue} has an item handler for {array.type}{stores}; "
    if array.type in unserved.listed_types:
        return lacks + "one has a plain handler of the name, not an @app.item_handler"
    return lacks + listed_types(unserved)
