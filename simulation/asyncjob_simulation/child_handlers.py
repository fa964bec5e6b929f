"""Handlers that submit children and wait for them, and what they note of that themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob import WorkerApp
from asyncjob.app.child_handles import Child
from asyncjob.app.child_jobs import ChildView
from asyncjob.app.context import JobContext
from asyncjob.app.errors import ChildGoneError
from asyncjob.models.base import RetryPolicy
from asyncjob.names import GROUP, JOBS
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls, RecordedCall

Object = dict[str, Any]

AWAITING: Final = "awaiting"
"""The type of these jobs. Their payload lists groups of children, one after the other."""

TIMED_OUT: Final = "timed out"

SAME_END: Final = "a parent is told how its child ended, each time the same"
THERE: Final = "a child that is waited for is not removed"
SAME_TIMEOUT: Final = "a wait for children comes to the same each time"


@dataclass
class ChildRecord:
    """What all such handlers have noted."""

    calls: HandlerCalls
    server: ApiServer
    count: Callable[[str], None]
    told: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Phase and result of each child that a parent was told of, by the child's UID."""

    groups: dict[tuple[str, int], str] = field(default_factory=dict)
    """Whether a group was over or timed out, by UID of the parent and number."""

    def tell(self, run: RecordedCall, number: int, views: Sequence[ChildView]) -> None:
        """Note how the children of a group have ended."""
        self._come(run, number, "over")
        for view in views:
            self._tell_of(run, view)

    def time_out(self, run: RecordedCall, number: int) -> None:
        """Note that a group has not ended in time."""
        self.count("children timed out")
        self._come(run, number, TIMED_OUT)

    def miss(self, run: RecordedCall, words: str) -> None:
        """Note that a child is gone: nobody deletes one while its parent is unfinished."""
        self._wrong(THERE, run, words)

    def _come(self, run: RecordedCall, number: int, end: str) -> None:
        # A group without a limit that was over is over for good; one that is over in time may
        # have been late for an attempt before, which kept that it has timed out.
        before = self.groups.setdefault((run.uid, number), end)
        if before == TIMED_OUT != end:
            self._wrong(SAME_TIMEOUT, run, f"group {number} has timed out, and now it is over")

    def _tell_of(self, run: RecordedCall, view: ChildView) -> None:
        end = (str(view.phase), view.result)
        self.count("child that succeeded" if view.succeeded else "child that did not succeed")
        before = self.told.setdefault(view.uid, end)
        stored = self.server.storage.get((GROUP, JOBS), (NAMESPACE, view.name))
        if end != before:
            self._wrong(SAME_END, run, f"{view.name} was {before}, and now it is {end}")
        if stored is not None and stored["metadata"]["uid"] == view.uid:
            status = stored["status"]
            kept = (status["phase"], status.get("result"))
            if kept != end:
                self._wrong(SAME_END, run, f"{view.name} is told to be {end}, and is {kept}")

    def _wrong(self, promise: str, run: RecordedCall, words: str) -> None:
        self.calls.problems.append((promise, run.name, words))


def add_child_handlers(app: WorkerApp, record: ChildRecord) -> None:
    """Have an app run such jobs as well."""

    @app.handler(AWAITING)
    async def awaiting(job: JobContext, payload: Any) -> Any:
        run, returned = record.calls.begin(job), False
        try:
            for number, group in enumerate(payload["groups"]):
                await _run_group(record, run, job, number, group)
            if job.attempt <= payload["failures"]:
                raise RuntimeError("fails as its payload says")
            returned = True
            return {"by": job.fencing_token}
        finally:
            record.calls.end(run, returned=returned)


async def _run_group(
    record: ChildRecord, run: RecordedCall, job: JobContext, number: int, group: Object
) -> None:
    children = [
        await _submit(job, f"{number}-{place}", child)
        for place, child in enumerate(group["children"])
    ]
    record.calls.step(run)
    try:
        if group["each"]:
            views = [await child.wait(timeout=group["limit"]) for child in children]
        else:
            views = await job.gather(*children, timeout=group["limit"])
    except TimeoutError:
        record.time_out(run, number)
    except ChildGoneError as error:
        record.miss(run, str(error))
    else:
        record.tell(run, number, views)


async def _submit(job: JobContext, key: str, child: Object) -> Child:
    retry = RetryPolicy(max_retries=child["retries"], initial_delay_seconds=1, max_crashes=20)
    return await job.submit("work", child["payload"], key=key, retry=retry)
