"""What a handler sends to the fake cluster: reports and calls, handed over one by one.

A handler waits at `await job.progress(…)` and `await job.checkpoint(…)` until its report is
acknowledged, a sync one inside the call. So a test can stop it, or kill its worker, exactly there.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from asyncjob.app import JobContext
from asyncjob.app.child_jobs import ChildWaits, HeldChildWaits
from asyncjob.app.context import ReportAck
from asyncjob.json_types import Json
from asyncjob.lifecycle.phase_change import StatusFields, truncate


@dataclass(slots=True, eq=False)
class Report:
    """Progress or a checkpoint: the field of `status` that it replaces."""

    status_field: str
    value: Json
    acknowledged: threading.Event = field(default_factory=threading.Event)
    waiter: asyncio.Future[None] | None = None

    def acknowledge(self) -> None:
        """Let the handler go on."""
        self.acknowledged.set()
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class ClusterCall:
    """What the handler wants the cluster to do; the cluster fills a future that it waits for."""

    run: Callable[[], object]


class HandlerMessages:
    """What a handler has sent and nobody has taken yet; a ReportSink. `wake` is called for each."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._messages: deque[Report | ClusterCall] = deque()
        self._closed = False
        self.latest_report = Report("none", None)

    def __len__(self) -> int:
        return len(self._messages)

    def progress(self, percent: int, message: str | None) -> None:
        """Take the handler's progress."""
        value: StatusFields = {"percent": percent}
        if message:
            value["message"] = truncate(message)
        self._add(Report("progress", value))

    def checkpoint(self, value: Json) -> None:
        """Take the handler's checkpoint."""
        self._add(Report("checkpoint", value))

    def add_call(self, call: ClusterCall) -> None:
        """Take a call; one of an attempt that is over is never run."""
        if not self._closed:
            self._messages.append(call)
            self._wake()

    def pop_oldest(self) -> Report | ClusterCall:
        """Take out the oldest."""
        return self._messages.popleft()

    def close(self) -> None:
        """Take nothing further, and hold up the handler no longer."""
        self._closed = True
        while self._messages:
            left = self._messages.popleft()
            if isinstance(left, Report):
                left.acknowledge()

    def _add(self, report: Report) -> None:
        self.latest_report = report
        if self._closed:
            report.acknowledge()
        else:
            self._messages.append(report)
            self._wake()


class _PendingAck(ReportAck):
    """Waits until a report is taken."""

    __slots__ = ("_report",)

    def __init__(self, report: Report) -> None:
        self._report = report

    def __await__(self) -> Generator[None, None, None]:
        report = self._report
        if not report.acknowledged.is_set():
            report.waiter = asyncio.get_running_loop().create_future()
            yield from report.waiter.__await__()


class SteppedContext(JobContext):
    """A job context whose handler waits until each report is taken."""

    messages: HandlerMessages
    in_thread: bool = False
    holds_for_children: bool = False
    abandoned: bool = False
    """Nobody waits any more for a handler that ignores its stop in a thread."""

    def progress(self, percent: float, message: str | None = None) -> ReportAck:
        """Report how far the work is."""
        super().progress(percent, message)
        return self._wait_for_ack()

    def checkpoint(self, value: object) -> ReportAck:
        """Save where to resume."""
        super().checkpoint(value)
        return self._wait_for_ack()

    def _open_child_waits(self) -> ChildWaits:
        if self.holds_for_children:
            self._steps.check_wait("the wait for children")
            return HeldChildWaits(self.child_jobs)
        return super()._open_child_waits()

    def _wait_for_ack(self) -> ReportAck:
        report = self.messages.latest_report
        if self.in_thread:
            report.acknowledged.wait()
        return _PendingAck(report)
