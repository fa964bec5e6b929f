"""Where the results of steps are kept, and what a full job or a stopped attempt means for them."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from asyncjob import JobContext, StepError, StepRefusedError, WorkerApp
from asyncjob.app.child_jobs import NoChildJobs
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError
from asyncjob.errors import TooLargeError, UnknownOutcomeError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.step_records import MAX_JOB_BYTES, MAX_STEP_BYTES, step_record
from asyncjob.offload import Address
from asyncjob_worker.execution.attempt import Attempt, AttemptServices
from asyncjob_worker.execution.attempt_steps import SETTLE_SECONDS, AttemptSteps
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import OffloadSettings, Settings
from asyncjob_worker.worker import RELEASE_SECONDS
from support.parts.callbacks import ignore, no_children
from support.parts.worker_parts import NOW, ScriptedSession, held, job, never_park, no_cluster

LARGE = "x" * MAX_STEP_BYTES


class AttemptHarness:
    """A held job, and what its steps are written to."""

    def __init__(self, folder: Path | None = None, **script: Any) -> None:
        url = Address.folder(f"file://{folder}") if folder else None
        self.settings = Settings(concurrency=1, offload=OffloadSettings(url=url))
        self.session = ScriptedSession(**{"json_patch": [{}], **script})
        self.stored: list[tuple[str, float]] = []
        self.services = AttemptServices.from_settings(
            self.settings,
            no_cluster,
            no_children,
            record=None,
            step_writer=StepWriter(self.session.session),
            on_step_stored=lambda type_, seconds: self.stored.append((type_, seconds)),
            may_park=never_park,
            server_time=time.time,
        )

    def steps(self, of: HeldJob) -> AttemptSteps:
        return AttemptSteps(self.services.steps, of, asyncio.get_running_loop(), NoChildJobs())

    async def keep(self, of: HeldJob, *values: Any) -> list[Any]:
        """Take a step for each value; return the records that were sent."""
        steps = self.steps(of)
        for number, value in enumerate(values):
            await asyncio.wrap_future(steps.begin(str(number)))
            await asyncio.wrap_future(steps.store(str(number), value))
        return [self.record(number) for number in range(len(values))]

    def record(self, number: int) -> Any:
        for call in self.session.made("json_patch"):
            for one in call.body:
                if one["path"] == "/status/steps" and str(number) in one["value"]:
                    return one["value"][str(number)]
                if one["path"] == f"/status/steps/{number}":
                    return one["value"]
        raise AssertionError(f"step {number} was not sent")

    async def run(self, handler: Callable[..., Any], of: HeldJob) -> Any:
        app = WorkerApp()
        app.handler("echo")(handler)
        attempt = Attempt(
            of, app.handlers["echo"], app, self.settings, self.services, on_start=ignore
        )
        return await attempt.run()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def stored_file(folder: Path) -> Path:
    (file,) = folder.rglob("*.json")
    return file


async def test_each_step_is_one_write_and_is_counted_with_its_type() -> None:
    bench, of = AttemptHarness(), held()
    one, two = await bench.keep(of, {"a": None}, None)
    assert (one["result"], one["sizeBytes"], one["attempt"]) == ({"a": None}, 10, of.job.attempt)
    assert "result" not in two
    assert [call.verb for call in bench.session.calls] == ["json_patch"] * 2
    assert [type_ for type_, _ in bench.stored] == [of.job.type] * 2


async def test_a_large_result_is_offloaded_and_read_again_by_a_later_attempt(folder: Path) -> None:
    bench = AttemptHarness(folder)
    (record,) = await bench.keep(held(), LARGE)
    assert "result" not in record
    assert record["resultRef"]["sizeBytes"] == record["sizeBytes"] == MAX_STEP_BYTES + 2
    later = held(steps={"0": record})
    assert await asyncio.wrap_future(bench.steps(later).load("0")) == LARGE


async def test_an_offloaded_result_that_is_gone_or_changed_is_an_error_that_names_the_step(
    folder: Path,
) -> None:
    bench = AttemptHarness(folder)
    (record,) = await bench.keep(held(), LARGE)
    stored_file(folder).write_text('"other"')
    with pytest.raises(StepError, match=r"step '0' cannot be read.*sha256"):
        await asyncio.wrap_future(bench.steps(held(steps={"0": record})).load("0"))
    elsewhere = {**record, "resultRef": {**record["resultRef"], "uri": "file:///etc/passwd"}}
    with pytest.raises(StepError, match=r"step '0' cannot be read.*not below"):
        await asyncio.wrap_future(bench.steps(held(steps={"0": elsewhere})).load("0"))


async def test_results_beyond_256_kib_in_all_are_offloaded(folder: Path) -> None:
    records = await AttemptHarness(folder).keep(held(), *["x" * 60_000] * 6)
    assert ["result" in one for one in records] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("full_by", ["payload", "checkpoint", "metadata"])
async def test_a_full_job_keeps_a_result_elsewhere(folder: Path, full_by: str) -> None:
    of = held()
    filling = "x" * (MAX_JOB_BYTES - 40_000)
    match full_by:
        case "payload":
            of.spec = {**of.spec, "payload": filling}
        case "checkpoint":
            of.checkpoint(filling)
        case "metadata":
            of.metadata = {"managedFields": [filling]}
    small, large = await AttemptHarness(folder).keep(of, "x", "x" * 50_000)
    assert ("result" in small, "resultRef" in large) == (True, True)


async def test_a_job_without_room_takes_no_step_at_all() -> None:
    of, called = held(), []
    of.spec = {**of.spec, "payload": "x" * MAX_JOB_BYTES}

    async def handler(job: JobContext) -> None:
        await job.step("charge", lambda: called.append(1))

    move = await AttemptHarness().run(handler, of)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert "step 'charge'" in move.fields["message"]
    assert called == []


async def test_a_result_that_no_store_takes_ends_the_job_and_names_the_step() -> None:
    async def handler(job: JobContext) -> None:
        await job.step("read", lambda: LARGE)

    move = await AttemptHarness().run(handler, held())
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert "step 'read'" in move.fields["message"]
    assert "--offload-url" in move.fields["message"]


async def test_what_the_api_server_finds_too_large_is_offloaded(folder: Path) -> None:
    bench = AttemptHarness(folder, json_patch=[TooLargeError("too large"), {}], get=[job()])
    steps = bench.steps(held())
    await asyncio.wrap_future(steps.begin("0"))
    await asyncio.wrap_future(steps.store("0", "small"))
    (added,) = [one for one in bench.session.calls[-1].body if one["path"] == "/status/steps"]
    assert "resultRef" in added["value"]["0"]


async def test_what_the_api_server_finds_too_large_without_a_store_is_refused() -> None:
    steps = AttemptHarness(json_patch=[TooLargeError("too large")], get=[job()]).steps(held())
    await asyncio.wrap_future(steps.begin("0"))
    with pytest.raises(StepRefusedError, match=r"step '0'.*--offload-url"):
        await asyncio.wrap_future(steps.store("0", "small"))


@pytest.mark.parametrize("why", [Stop.DRAINING, Stop.CANCELLED, Stop.TIMED_OUT])
async def test_a_stopped_attempt_begins_no_step_but_stores_what_is_over(why: Stop) -> None:
    bench, of = AttemptHarness(), held()
    steps = bench.steps(of)
    await asyncio.wrap_future(steps.begin("0"))
    of.stop(why)
    with pytest.raises(AttemptOverError, match=r"step '1' is not begun"):
        await asyncio.wrap_future(steps.begin("1"))
    await asyncio.wrap_future(steps.store("0", "done"))
    assert bench.record(0)["result"] == "done"


async def test_a_handler_that_is_stopped_while_its_step_is_stored_has_it_stored() -> None:
    of, undone = held(), []

    def stop(_: object) -> Any:
        of.stop(Stop.DRAINING)
        return {}

    bench = AttemptHarness(json_patch=[stop])

    async def handler(job: JobContext) -> None:
        try:
            await job.step("charge", lambda: "paid")
            await asyncio.sleep(100)
        except Exception:
            undone.append(1)
            raise

    move = await bench.run(handler, of)
    assert (move.target, move.reason, undone) == (Phase.QUEUED, Reason.RELEASED, [])
    assert len(bench.session.made("json_patch")) == 1


def stopping_body(of: HeldJob, why: Stop, end: Callable[[], Any]) -> Callable[[], Any]:
    """Return a plain function that has the attempt stopped, and ends a while after that."""

    def body() -> Any:
        of.stop(why)
        time.sleep(0.1)
        return end()

    return body


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (Stop.DRAINING, Reason.RELEASED),
        (Stop.CANCELLED, Reason.CANCEL_REQUESTED),
        (Stop.TIMED_OUT, Reason.EXECUTION_TIMEOUT),
    ],
)
async def test_a_plain_step_that_ends_after_the_stop_of_its_async_handler_is_stored(
    why: Stop, reason: Reason
) -> None:
    of, undone, bench = held(), [], AttemptHarness()

    async def handler(job: JobContext) -> None:
        try:
            await job.step("0", stopping_body(of, why, lambda: "paid"))
        except Exception:
            undone.append(1)
            raise
        undone.append(2)

    move = await bench.run(handler, of)
    assert (move.reason, bench.record(0)["result"], undone) == (reason, "paid", [])


@pytest.mark.parametrize("end", [lambda: 1 / 0, lambda: LARGE, lambda: asyncio.sleep(0)])
async def test_a_plain_step_without_a_result_to_keep_undoes_nothing_after_the_stop(
    end: Callable[[], Any],
) -> None:
    of, undone, bench = held(), [], AttemptHarness()

    async def handler(job: JobContext) -> None:
        try:
            await job.step("0", stopping_body(of, Stop.DRAINING, end), retries=3)
        except Exception:
            undone.append(1)
            raise

    move = await bench.run(handler, of)
    assert (move.target, move.reason, undone) == (Phase.QUEUED, Reason.RELEASED, [])
    assert bench.session.calls == []


async def test_a_time_limit_of_the_handler_s_own_does_not_wait_for_a_plain_step() -> None:
    go_on = threading.Event()

    async def handler(job: JobContext) -> str:
        try:
            async with asyncio.timeout(0.05):
                await job.step("slow", go_on.wait, 10)
        except TimeoutError:
            go_on.set()
            return "late"
        return "never"

    assert (await AttemptHarness().run(handler, held())).fields["result"] == "late"


async def test_the_end_of_a_stopped_handler_waits_until_a_step_is_stored() -> None:
    of = held()

    def stop(_: object) -> Any:
        of.stop(Stop.DRAINING)
        return UnknownOutcomeError("no answer to PATCH")

    bench = AttemptHarness(json_patch=[stop, {}], get=[job()])

    async def handler(job: JobContext) -> None:
        await job.step("charge", lambda: "paid")

    assert (await bench.run(handler, of)).reason is Reason.RELEASED
    assert len(bench.session.made("json_patch")) == 2
    assert bench.stored


async def test_the_end_of_a_handler_waits_for_a_step_no_longer_than_a_drain_can() -> None:
    assert SETTLE_SECONDS < RELEASE_SECONDS / 2


async def test_a_step_that_is_done_costs_no_request() -> None:
    kept = step_record(attempt=1, started=NOW, now=NOW, size=4, result="paid")

    async def handler(job: JobContext) -> str:
        return await job.step("charge", lambda: "again")

    bench = AttemptHarness()
    move = await bench.run(handler, held(steps={"charge": kept}))
    assert move.fields["result"] == "paid"
    assert bench.session.calls == []


async def test_a_sync_handler_takes_steps_in_its_thread_and_the_loop_writes_them() -> None:
    def handler(job: JobContext) -> list[str]:
        return [job.step(key, str.upper, key).result() for key in "ab"]

    bench = AttemptHarness()
    move = await bench.run(handler, held())
    assert move.fields["result"] == ["A", "B"]
    assert len(bench.session.made("json_patch")) == 2


async def test_steps_that_threads_of_a_sync_handler_take_at_once_have_one_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[AttemptSteps] = []

    def slowly(*arguments: Any) -> AttemptSteps:
        time.sleep(0.05)
        made.append(AttemptSteps(*arguments))
        return made[-1]

    monkeypatch.setattr("asyncjob_worker.execution.attempt.AttemptSteps", slowly)

    def handler(job: JobContext) -> list[str]:
        def take(key: str) -> str:
            try:
                return job.step(key, str.upper, key).result()
            except StepError:
                return "named before"

        with ThreadPoolExecutor(4) as threads:
            return sorted(threads.map(take, "abab"))

    bench = AttemptHarness()
    move = await bench.run(handler, held())
    assert move.fields["result"] == ["A", "B", "named before", "named before"]
    assert (len(made), len(bench.session.made("json_patch"))) == (1, 2)


@pytest.mark.parametrize("knows", [True, False])
async def test_a_sync_handler_that_is_stopped_undoes_nothing(knows: bool) -> None:
    of, undone = held(), []

    def handler(job: JobContext) -> None:
        of.stop(Stop.DRAINING)
        while knows and not job.cancelled:
            time.sleep(0.01)
        try:
            job.step("charge", lambda: 1).result()
        except Exception:
            undone.append(1)
            raise

    bench = AttemptHarness()
    move = await bench.run(handler, of)
    assert (move.target, move.reason, undone) == (Phase.QUEUED, Reason.RELEASED, [])
    assert bench.session.calls == []
