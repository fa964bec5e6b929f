"""Child jobs of handlers in processes of their own, as if these ran in the worker."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from asyncjob.app import JobParent
from asyncjob.app.context import Stop
from asyncjob.errors import (
    AlreadyExistsError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.execution import handler_task
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from asyncjob_worker.isolation import process_execution, protocol
from asyncjob_worker.leases.held_job import HeldJob
from support.apps.isolated_family import app
from support.parts.isolation import IsolatedAttempts, begin_with, job, until
from support.parts.worker_parts import Call, ScriptedSession

pytestmark = pytest.mark.asyncio(loop_scope="module")

TARGET = "support.apps.isolated_family:app"
REFUSALS = {
    "submitforbiddenerror": ForbiddenError("not you"),
    "submitrefusederror": TooLargeError("too much"),
    "submitconflicterror": AlreadyExistsError(),
    "submiterror": ObjectNotFoundError("no such namespace"),
    "refused": InvalidError("no"),
}


class Namespace(ScriptedSession):
    """Jobs that finish as soon as they are there, but for one; some names are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, Any] = {}
        self.may_list = True
        self.held_back: set[str] = set()
        self.gate = asyncio.Event()

    async def create(self, path: str, body: Any) -> Any:
        name = body["metadata"]["name"]
        self.calls.append(Call("create", path, body))
        if name in self.held_back:
            await self.gate.wait()
        if name in REFUSALS:
            raise REFUSALS[name]
        metadata = {**body["metadata"], "uid": f"uid-{name}"}
        phase = "Running" if name == "running" else "Succeeded"
        status = {"phase": phase, "result": body["spec"].get("payload")}
        self.jobs[name] = {**body, "metadata": metadata, "status": status}
        return self.jobs[name]

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        self.calls.append(Call("get", path, params=params or {}))
        name = path.rpartition("/")[2]
        if name == "gone":
            raise ObjectNotFoundError
        if name in REFUSALS:
            return {"metadata": {"name": name}}
        return self.jobs[name]

    async def list(
        self, path: str, params: Mapping[str, str], *, accept: str = ""
    ) -> AsyncIterator[Any]:
        self.calls.append(Call("list", path, params=params))
        assert ("as=PartialObjectMetadataList" in accept) is ("fieldSelector" in params)
        if "fieldSelector" in params:
            return
        if not self.may_list:
            raise ForbiddenError("no list", status=403)
        for one in self.jobs.values():
            yield one


class ProxyHarness:
    """A attempts whose handlers submit into a namespace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespace = Namespace()
        self.own: list[AttemptChildJobs] = []
        self.attempts = IsolatedAttempts(
            app=app, begin=begin_with(TARGET), children=self._children, may_park=self._may_park
        )

    async def _may_park(self, _: object) -> bool:
        return True

    def _children(self, held: HeldJob) -> AttemptChildJobs:
        self.own.append(AttemptChildJobs(self.namespace.session, held))
        return self.own[-1]

    def trace(self) -> list[str]:
        file = self.folder / "trace"
        return file.read_text().splitlines() if file.exists() else []

    async def run(self, type_: str, payload: Any = None) -> PhaseChange:
        move = await self.attempts.run(job(type_, payload))
        assert move
        return move

    async def stopped(self, type_: str, why: Stop) -> PhaseChange | None:
        """Run a handler that waits for ever for a child, and stop it then."""
        of = job(type_)
        running = asyncio.ensure_future(self.attempts.run(of))
        await until(lambda: "waiting" in self.trace(), "the handler waits")
        of.stop(why)
        return await running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProxyHarness]:
    folder = tmp_path_factory.mktemp("family")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAMILY_FOLDER", str(folder))
        harness = ProxyHarness(folder)
        yield harness
        await harness.attempts.close()


@pytest.fixture
def harness(shared_harness: ProxyHarness) -> ProxyHarness:
    shared_harness.namespace = Namespace()
    shared_harness.own.clear()
    (shared_harness.folder / "trace").unlink(missing_ok=True)
    return shared_harness


@pytest.mark.parametrize("type_", ["family", "family-sync"])
async def test_children_are_submitted_at_a_time_and_waited_for(
    harness: ProxyHarness, type_: str
) -> None:
    result = await harness.attempts.result(type_, 6)
    assert result == {"results": [{"n": str(number)} for number in range(6)], "all": 6}
    names = sorted(harness.namespace.jobs)
    await harness.attempts.result(type_, 6)
    assert sorted(harness.namespace.jobs) == names


async def test_errors_arrive_as_the_classes_that_an_except_names(harness: ProxyHarness) -> None:
    harness.namespace.may_list = False
    caught = await harness.attempts.result("excepts")
    assert [each[0] for each in caught] == [
        "SubmitForbiddenError",
        "SubmitRefusedError",
        "SubmitConflictError",
        "SubmitError",
        "ChildGoneError",
        "TimeoutError",
        "ForbiddenError",
    ]
    assert caught[0][1] == "child submitforbiddenerror: not you"
    assert caught[5][1] == "child running has not finished within 0.01 s"
    assert caught[6] == ["ForbiddenError", "no list", 403]


async def test_an_error_that_nobody_awaited_fails_the_attempt(harness: ProxyHarness) -> None:
    move = await harness.run("forgets", "refused")
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    error: Any = move.fields["error"]
    assert (error["type"], error["category"]) == ("SubmitRefusedError", "Validation")
    assert error["message"] == "child refused: no"


async def test_success_counts_only_once_all_that_was_submitted_is_stored(
    harness: ProxyHarness,
) -> None:
    harness.namespace.held_back = {"kept"}
    of = job("forgets", "kept")
    running = asyncio.ensure_future(harness.attempts.run(of))
    await until(lambda: harness.own and harness.own[0]._in_flight, "the child is on its way")
    # Nothing tells from outside that a handler has returned and is not done: so it gets time.
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done
    harness.namespace.gate.set()
    move = await running
    assert move
    assert (move.target, list(harness.namespace.jobs)) == (Phase.SUCCEEDED, ["kept"])


async def test_before_a_park_all_that_was_submitted_is_stored(harness: ProxyHarness) -> None:
    harness.namespace.held_back = {"kept"}
    running = asyncio.ensure_future(harness.attempts.run(job("parks", ["kept", "other"])))
    await until(lambda: harness.own and harness.own[0]._in_flight, "the child is on its way")
    done, _ = await asyncio.wait({running}, timeout=0.6)
    assert not done
    harness.namespace.gate.set()
    move = await running
    assert move
    assert (move.target, {*harness.namespace.jobs}) == (Phase.SCHEDULED, {"kept", "other"})


async def test_an_error_before_a_park_is_left_to_the_next_attempt(harness: ProxyHarness) -> None:
    move = await harness.run("parks", ["refused"])
    assert (move.target, harness.namespace.jobs) == (Phase.SCHEDULED, {})


async def test_what_a_failed_run_has_sent_is_stored_before_the_success_of_the_next(
    harness: ProxyHarness,
) -> None:
    harness.namespace.held_back = {"kept"}
    running = asyncio.ensure_future(harness.attempts.run(job("fails-once")))
    await until(lambda: harness.own and harness.own[0]._in_flight, "the child is on its way")
    await until(lambda: harness.attempts.pool._idle, "both runs are over")
    harness.namespace.gate.set()
    move = await running
    assert move
    assert (move.target, list(harness.namespace.jobs)) == (Phase.SUCCEEDED, ["kept"])


async def test_a_stop_while_submissions_are_awaited_counts(harness: ProxyHarness) -> None:
    harness.namespace.held_back = {"kept"}
    of = job("forgets", "kept")
    running = asyncio.ensure_future(harness.attempts.run(of))
    await until(lambda: harness.own and harness.own[0]._in_flight, "the child is on its way")
    processes = set(harness.attempts.pool._processes)
    of.stop(Stop.DRAINING)
    move = await running
    harness.namespace.gate.set()
    assert move
    assert (move.reason, harness.namespace.jobs) == (Reason.RELEASED, {})
    assert harness.attempts.pool._processes == processes, "it had to be killed"


async def test_an_async_handler_that_waits_is_interrupted_once_and_cleans_up(
    harness: ProxyHarness,
) -> None:
    move = await harness.stopped("waits", Stop.CANCELLED)
    assert move
    assert move.target is Phase.CANCELLED
    assert harness.trace() == ["waiting", "cleaned up True"]


async def test_a_thread_that_waits_hears_of_the_stop_and_submits_nothing_more(
    harness: ProxyHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_task, "FENCED_SECONDS", 10.0)  # a busy machine takes that long
    assert await harness.stopped("waits-sync", Stop.FENCED) is None
    # It is told by the call itself, or by the stop if that is quicker.
    over = "the attempt is over"
    *before, told = harness.trace()
    assert before == ["waiting", "told"]
    assert told in {over, f"{over} (fenced): too-late is not submitted"}
    assert list(harness.namespace.jobs) == ["running"]


async def test_what_a_handler_does_not_wait_for_any_more_is_not_looked_at(
    harness: ProxyHarness,
) -> None:
    harness.namespace.held_back = {"last"}
    running = asyncio.ensure_future(harness.attempts.run(job("gives-up")))
    await until(lambda: "gave up" in harness.trace(), "the handler gives up")
    await until(lambda: not harness.own[0]._poller._waits, "nobody looks")
    harness.namespace.gate.set()
    move = await running
    assert move
    assert move.target is Phase.SUCCEEDED


async def test_a_job_that_is_over_submits_nothing_by_the_next_one_of_its_process(
    harness: ProxyHarness,
) -> None:
    attempts = IsolatedAttempts(
        most=1, app=app, begin=begin_with(TARGET), children=harness._children
    )
    assert await attempts.result("keeps") == "submitted"
    harness.namespace.jobs.clear()
    assert await attempts.result("keeps") == "the attempt is over: it has ended"
    await attempts.close()
    assert harness.namespace.jobs == {}


async def test_answers_that_no_frame_takes_are_an_error_with_their_size(
    harness: ProxyHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(message: Any) -> bytes:
        return protocol.encode(message, limit=2000)

    monkeypatch.setattr(process_execution, "encode", encode)
    move = await harness.run("family", 9)
    error: Any = move.fields["error"]
    assert error["type"] == "SubmitError"
    assert "the answer about child jobs: it has" in error["message"]


async def test_where_nobody_submits_that_is_what_the_handler_hears() -> None:
    attempts = IsolatedAttempts(app=app, begin=begin_with(TARGET))
    move = await attempts.run(job("forgets", "x"))
    assert attempts.pool._idle, "it was no answer, but the end of the process"
    await attempts.close()
    assert move
    assert "child jobs are not available in this runner: x" in str(move.fields["message"])


async def test_a_submission_is_tried_until_it_is_answered(harness: ProxyHarness) -> None:
    create, lost = harness.namespace.create, [UnknownOutcomeError("reset")]

    async def shaky(path: str, body: Any) -> Any:
        if lost:
            raise lost.pop()
        return await create(path, body)

    harness.namespace.create = shaky  # type: ignore[method-assign]
    with capture_logs():
        assert await harness.attempts.result("forgets", "kept") == "done"
    assert list(harness.namespace.jobs) == ["kept"]


async def test_a_handler_knows_its_parent_and_its_trace_and_logs_with_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    attempts = IsolatedAttempts(app=app, begin=begin_with(TARGET))
    of = job("plain", spec={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01", "priority": 7})
    of.parent = JobParent("p-uid", "p")
    move = await attempts.run(of)
    await attempts.close()
    assert move
    known: Any = move.fields["result"]
    assert (known["trace"], known["priority"]) == ("ab" * 16, 7)
    assert known["parent"] == {"uid": "p-uid", "name": "p"}
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "handler speaks" in line)
    for word in ("extra=1", "job=j", "namespace=ns", "type=plain", f"trace_id={'ab' * 16}"):
        assert word in line
