"""One attempt of one handler as a test sees it: what it does, and what is done to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asyncjob.app.stop import Stop
from asyncjob.json_types import Json, as_object, opt_integer, opt_text
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.models.status import JobError
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.cluster import FakeCluster
from asyncjob.testing.errors import StuckError, TestKitError
from asyncjob.testing.job import FakeJob


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the worker reports of an attempt. `retry_after` is the backoff, in seconds."""

    phase: Phase
    reason: Reason | None
    message: str | None
    error: JobError | None
    retry_after: float | None


class HandlerRun:
    """One attempt. What it tells is always of now."""

    def __init__(self, cluster: FakeCluster, job: FakeJob) -> None:
        self._cluster = cluster
        self.job = job
        self._attempt = cluster.simulator.attempt_of(job.record)

    @property
    def progress(self) -> list[tuple[int, str | None]]:
        """What the handler reported, in order: percent and message."""
        values = map(as_object, self._values("progress"))
        return [
            (opt_integer(value, "percent") or 0, opt_text(value, "message")) for value in values
        ]

    @property
    def checkpoints(self) -> list[Json]:
        """What the handler saved, in order."""
        return self._values("checkpoint")

    @property
    def result(self) -> Json:
        """What the handler returned, as it is stored; None unless it succeeded."""
        return self.job.result

    @property
    def children(self) -> Sequence[FakeJob]:
        """The jobs that the handler has submitted; they run in the same fake cluster."""
        return self.job.children

    @property
    def error(self) -> BaseException | None:
        """What the handler raised, or what was wrong with its payload."""
        return self._attempt.error

    @property
    def finished(self) -> bool:
        """Whether the outcome is decided."""
        return self.job.phase is not Phase.RUNNING

    @property
    def outcome(self) -> Outcome:
        """The outcome as the worker reports it; raises TestKitError while there is none."""
        if not self.finished:
            raise TestKitError("the handler is still at work: leave the `async with` block first")
        status = self.job.status
        return Outcome(
            status.phase, status.reason, status.message, status.error, status.retry_delay_seconds
        )

    @property
    def clock(self) -> FakeClock:
        """The clock that the handler sees."""
        return self._cluster.clock

    # ---- what happens to it

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the handler work until the condition holds; looked at after each report.

        Raises StuckError if the handler ends without it.
        """
        await self._cluster.run_until(lambda: self.finished or condition())
        if not condition():
            raise StuckError(f"the handler has ended, and it does not hold; {self.job}")

    async def cancel(self) -> None:
        """Cancel the job: the handler is told to stop."""
        await self.job.cancel()

    async def drain(self) -> None:
        """Let the worker shut down, its grace period over: the handler is told to stop."""
        self._attempt.stop(Stop.DRAINING)

    async def time_out(self) -> None:
        """Let the attempt's time limit pass: the handler is told to stop."""
        self.clock.move_to(max(self.clock.elapsed, self._attempt.times_out_at))
        self._attempt.stop(Stop.TIMED_OUT)

    async def stop(self, why: Stop) -> None:
        """Tell the handler to stop: cancelled, timed out or draining."""
        match why:
            case Stop.CANCELLED:
                await self.cancel()
            case Stop.TIMED_OUT:
                await self.time_out()
            case Stop.DRAINING:
                await self.drain()
            case _:
                raise TestKitError(
                    f"a test does not stop a handler as {why!r}; say one of "
                    "Stop.CANCELLED, Stop.TIMED_OUT, Stop.DRAINING"
                )

    async def finish(self) -> None:
        """Let the handler work to its end."""
        await self._cluster.run_until(lambda: self.finished)

    def _values(self, name: str) -> list[Json]:
        return [report.value for report in self._attempt.reports if report.status_field == name]
