"""Signals in the test kit: a handler waits for days without a slot, and goes on once it is told."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import core_schema

from asyncjob.app import Fail, JobContext, SignalInvalid, SignalTimeout, WorkerApp
from asyncjob.app.errors import StepError
from asyncjob.errors import InvalidError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.signals import MAX_SIGNALS
from asyncjob.testing import FakeCluster, FakeJob, run_handler

pytestmark = pytest.mark.filterwarnings("error")

PARKED_ONCE = (
    Phase.QUEUED,
    Phase.RUNNING,
    Phase.PENDING,
    Phase.QUEUED,
    Phase.RUNNING,
    Phase.SUCCEEDED,
)


class Approval(BaseModel):
    ok: bool
    note: str = ""


def release(timeout: timedelta | None = None) -> tuple[WorkerApp, list[str]]:
    app, taken = WorkerApp(), list[str]()

    @app.handler("job")
    async def handle(job: JobContext) -> tuple[bool, str]:
        await job.step("build", taken.append, "build")
        approval = await job.signal("approval", Approval, timeout=timeout)
        await job.step("ship", taken.append, "ship")
        return approval.ok, job.signal_sender("approval")

    return app, taken


async def settled(
    app: WorkerApp, act: Callable[[FakeJob], Awaitable[object]], **options: Any
) -> FakeJob:
    """Return a job that is idle after something was done to it while it was parked."""
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job", **options)
        await cluster.run_until(lambda: "waiting" in job.record.status)
        await act(job)
        await cluster.run_until_idle()
        return job


async def approve(job: FakeJob) -> None:
    await job.signal("approval", {"ok": True}, sent_by="ada")


async def test_a_handler_waits_without_a_slot_and_goes_on_with_what_it_is_told() -> None:
    app, taken = release()

    async def look_and_approve(job: FakeJob) -> None:
        assert (job.phase, job.reason) == (Phase.PENDING, Reason.WAITING_FOR_SIGNAL)
        assert job.message == "waits for signal approval"
        [waiting] = job.status.waiting or []
        assert (waiting.kind, waiting.key, waiting.until) == ("Signal", "approval", None)
        assert waiting.payload_schema == Approval.model_json_schema()
        assert job.status.waits is None
        await approve(job)

    job = await settled(app, look_and_approve)
    assert job.phases == PARKED_ONCE
    assert job.result == [True, "ada"]
    assert taken == ["build", "ship"]
    assert job.status.parks == 1
    assert [entry.phase for entry in job.history] == [Phase.SUCCEEDED]
    assert job.status.waiting is None


async def test_a_signal_that_came_early_is_taken_at_once() -> None:
    app, taken = release()
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await approve(job)
        await cluster.run_until_idle()
    assert (job.result, job.status.parks, job.attempt) == ([True, "ada"], 0, 1)
    assert taken == ["build", "ship"]


async def test_a_sync_handler_waits_as_well() -> None:
    app = WorkerApp()

    @app.handler("job")
    def handle(job: JobContext) -> bool:
        return job.signal("approval", Approval).result().ok

    job = await settled(app, approve)
    assert (job.phases, job.result) == (PARKED_ONCE, True)


async def nothing(_: FakeJob) -> None:
    """Do nothing."""


async def test_a_signal_that_does_not_come_in_time_is_an_error_and_refused_from_then_on() -> None:
    app, _ = release(timedelta(days=3))
    job = await settled(app, nothing)
    assert (job.phase, job.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    assert job.error is not None
    assert (job.error.type, job.error.category) == ("SignalTimeout", "Timeout")
    ends = job.status.waits or {}
    assert (ends["approval"].until, ends["approval"].over) == ("2026-01-04T00:00:00.000Z", True)


async def test_a_handler_may_go_on_after_a_timeout_and_gets_no_signal_any_more() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        try:
            await job.signal("approval", Approval, timeout=timedelta(days=1))
        except SignalTimeout:
            await job.sleep("nap", hours=1)
            return "nobody came"
        return "approved"

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until(lambda: job.phase is Phase.SCHEDULED)
        with pytest.raises(InvalidError, match=r"signal\.in-time"):
            await approve(job)
        await cluster.run_until_idle()
    assert (job.result, job.status.parks) == ("nobody came", 2)


async def test_a_redrive_waits_for_the_signal_again_and_keeps_sleeps() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> bool:
        await job.sleep("nap", hours=1)
        approval = await job.signal("approval", Approval, timeout=timedelta(days=1))
        return approval.ok

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until_idle()
        assert job.phase is Phase.DEAD_LETTER
        with pytest.raises(InvalidError, match=r"signal\.unfinished"):
            await approve(job)
        await job.redrive()
        await cluster.run_until(lambda: job.phase is Phase.PENDING)
        assert {*(job.status.waits or {})} == {"nap", "approval"}
        await approve(job)
        await cluster.run_until_idle()
    assert (job.result, job.status.parks) == (True, 1)


async def test_the_first_of_a_sleep_and_a_signal_wakes_the_job() -> None:
    app, ended = WorkerApp(), list[str]()

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        try:
            await job.signal("stop", timeout=timedelta(hours=1))
        except SignalTimeout:
            ended.append("hour")
        await job.sleep("nap", hours=1)
        await job.signal("go")
        return "gone"

    job = await settled(app, lambda job: job.signal("go"))
    assert (job.result, ended) == ("gone", ["hour", "hour"])


async def test_a_payload_that_does_not_fit_is_an_error_and_another_name_may_follow() -> None:
    app, taken = WorkerApp(), list[str]()

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        try:
            await job.signal("approval", Approval)
        except SignalInvalid as error:
            taken.append(str(error))
            again = await job.signal("approval-2", Approval)
            return again.note
        return "fits"

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until(lambda: job.phase is Phase.PENDING)
        await job.signal("approval", {"ok": "perhaps"}, sent_by="ada")
        await cluster.run_until(lambda: job.status.parks == 2)
        await job.signal("approval-2", {"ok": True, "note": "now"})
        await cluster.run_until_idle()
    assert job.result == "now"
    assert all("ada" in why and "ok: " in why for why in taken)


async def test_a_signal_is_sent_once_and_a_job_takes_sixteen_kibibytes() -> None:
    app, _ = release()

    async def twice(job: FakeJob) -> None:
        await job.signal("other", "x" * 16_000)
        written = job.versions
        await job.signal("other", "x" * 16_000)
        assert job.versions == written
        with pytest.raises(InvalidError, match=r"signal\.once"):
            await job.signal("other", "x" * 16_000, sent_by="another")
        with pytest.raises(InvalidError, match=r"signal\.once"):
            await job.signal("other", "y")
        with pytest.raises(Exception, match="16384"):
            await job.signal("large", "x" * 17_000)
        with pytest.raises(InvalidError, match=r"signal\.name"):
            await job.signal("no name", 1)
        for number in range(MAX_SIGNALS - 2):
            await job.signal(f"more-{number}", number)
        await approve(job)
        with pytest.raises(InvalidError, match=rf"spec\.signals: .*{MAX_SIGNALS}"):
            await job.signal("one-more", 1)
        await job.signal("more-1", 1.0)
        with pytest.raises(InvalidError, match=r"signal\.once"):
            await job.signal("more-1", True)

    job = await settled(app, twice)
    assert (job.phase, len(job.model.spec.signals or {})) == (Phase.SUCCEEDED, MAX_SIGNALS)


async def test_a_parked_job_is_cancelled_where_it_stands_and_sleeps_no_longer_when_suspended() -> (
    None
):
    app, _ = release()
    job = await settled(app, lambda job: job.cancel())
    assert (job.phase, job.status.waiting) == (Phase.CANCELLED, None)

    async def suspend_and_approve(job: FakeJob) -> None:
        await job.suspend()
        await approve(job)

    app, _ = release()
    held = await settled(app, suspend_and_approve)
    assert (held.phase, held.reason) == (Phase.PENDING, Reason.SUSPENDED)


async def test_no_job_is_created_with_signals() -> None:
    app, _ = release()
    async with FakeCluster(app) as cluster:
        with pytest.raises(InvalidError, match=r"signal\.not-at-creation"):
            await cluster.submit("job", signals={"approval": {"sentBy": "ada"}})


async def test_one_attempt_is_run_with_signals_given() -> None:
    app, _ = release()
    run = await run_handler(app, "job", signals={"approval": {"ok": False}})
    assert run.result == [False, "somebody"]


async def test_names_and_senders_are_checked() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> None:
        with pytest.raises(StepError, match="letters, digits"):
            job.signal("no name")
        with pytest.raises(StepError, match="has not been received"):
            job.signal_sender("approval")
        with pytest.raises(StepError, match="not between 0 and"):
            job.signal("approval", timeout=timedelta(days=366))
        asyncio.ensure_future(job.signal("approval")).cancel()
        with pytest.raises(StepError, match=r"^sleep 'approval': .* used this key before"):
            job.sleep("approval", hours=1)
        with pytest.raises(StepError, match=r"^signal 'approval': .*wait for another name"):
            job.signal("approval")
        raise Fail("as expected")

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until_idle()
    assert job.message == "as expected"


class Odd:
    """A type that can be checked, and has no schema."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        return core_schema.no_info_plain_validator_function(lambda _: cls())


@pytest.mark.parametrize("type_", [None, Any, Odd])
async def test_a_signal_without_a_schema_is_waited_for_all_the_same(type_: Any) -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> bool:
        await (job.signal("approval", type_) if type_ else job.signal("approval"))
        return True

    async def look_and_approve(job: FakeJob) -> None:
        assert job.record.status["waiting"] == [{"kind": "Signal", "key": "approval"}]
        await approve(job)

    assert (await settled(app, look_and_approve)).result is True
