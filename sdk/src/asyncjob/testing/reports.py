"""What a handler reports, handed over one by one.

A handler waits at `await job.progress(…)` and `await job.checkpoint(…)` until its report is taken,
a sync one inside the call. So a test can stop it, or kill its worker, exactly there.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from asyncjob.app import JobContext
from asyncjob.app.reports import Noted
from asyncjob.json_types import Json
from asyncjob.lifecycle.move import Fields, clip


@dataclass(slots=True, eq=False)
class Report:
    """Progress or a checkpoint: the field of `status` that it replaces."""

    name: str
    value: Json
    taken: threading.Event = field(default_factory=threading.Event)
    waiter: asyncio.Future[None] | None = None

    def take(self) -> None:
        """Let the handler go on."""
        self.taken.set()
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class Errand:
    """What the handler wants the cluster to do; the cluster fills a future that it waits for."""

    run: Callable[[], object]


class Inbox:
    """What one attempt has told and is not taken yet; a ReportSink. `stir` tells of each."""

    def __init__(self, stir: Callable[[], object]) -> None:
        self._stir = stir
        self._reports: deque[Report | Errand] = deque()
        self._closed = False
        self.newest = Report("none", None)

    def __len__(self) -> int:
        return len(self._reports)

    def progress(self, percent: int, message: str | None) -> None:
        """Take the handler's progress."""
        value: Fields = {"percent": percent}
        if message:
            value["message"] = clip(message)
        self._add(Report("progress", value))

    def checkpoint(self, value: Json) -> None:
        """Take the handler's checkpoint."""
        self._add(Report("checkpoint", value))

    def ask(self, errand: Errand) -> None:
        """Take an errand; one of an attempt that is over is never run."""
        if not self._closed:
            self._reports.append(errand)
            self._stir()

    def first(self) -> Report | Errand:
        """Take out the oldest."""
        return self._reports.popleft()

    def close(self) -> None:
        """Take no more, and hold up the handler no longer."""
        self._closed = True
        while self._reports:
            left = self._reports.popleft()
            if isinstance(left, Report):
                left.take()

    def _add(self, report: Report) -> None:
        self.newest = report
        if self._closed:
            report.take()
        else:
            self._reports.append(report)
            self._stir()


class _Handover(Noted):
    """Waits until a report is taken."""

    __slots__ = ("_report",)

    def __init__(self, report: Report) -> None:
        self._report = report

    def __await__(self) -> Generator[None, None, None]:
        report = self._report
        if not report.taken.is_set():
            report.waiter = asyncio.get_running_loop().create_future()
            yield from report.waiter.__await__()


class SteppedContext(JobContext):
    """A job context whose handler waits until each report is taken."""

    inbox: Inbox
    in_thread: bool = False
    abandoned: bool = False
    """Nobody waits any more for a handler that ignores its stop in a thread."""

    def progress(self, percent: float, message: str | None = None) -> Noted:
        """Report how far the work is."""
        super().progress(percent, message)
        return self._hand_over()

    def checkpoint(self, value: object) -> Noted:
        """Save where to resume."""
        super().checkpoint(value)
        return self._hand_over()

    def _hand_over(self) -> Noted:
        report = self.inbox.newest
        if self.in_thread:
            report.taken.wait()
        return _Handover(report)
