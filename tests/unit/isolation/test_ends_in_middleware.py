"""What a middleware sees of a handler that parks or stops: the same wherever the handler runs."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.step_records import step_record
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from asyncjob_worker.leases.held_job import HeldJob
from support.apps.translating import KINDS, WAITS, app, seen
from support.parts.isolation import IsolatedAttempts, begin_with, job
from support.parts.worker_parts import NOW, Call, ScriptedSession

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARKS = {
    "sleep": (Phase.SCHEDULED, Reason.SLEEPING),
    "signal": (Phase.PENDING, Reason.WAITING_FOR_SIGNAL),
    "child": (Phase.PENDING, Reason.WAITING_FOR_CHILDREN),
}


class RunningChildren(ScriptedSession):
    """Children that are stored and never end."""

    async def create(self, path: str, body: Any) -> Any:
        self.calls.append(Call("create", path, body))
        name = body["metadata"]["name"]
        return {**body, "metadata": {**body["metadata"], "uid": f"uid-{name}"}}

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        self.calls.append(Call("get", path, params=params or {}))
        name = path.rpartition("/")[2]
        return {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {"type": "leaf"},
            "status": {"phase": "Running"},
        }

    async def list(
        self, path: str, params: Mapping[str, str], *, accept: str = ""
    ) -> AsyncIterator[Any]:
        self.calls.append(Call("list", path, params=params))
        assert "as=PartialObjectMetadataList" in accept, "of those that are unfinished"
        yield {"metadata": {"name": "running", "uid": "uid-running"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attempts() -> AsyncIterator[IsolatedAttempts]:
    session = RunningChildren()

    async def may_park(_: object) -> bool:
        return True

    def children(held: HeldJob) -> AttemptChildJobs:
        return AttemptChildJobs(session.session, held)

    async def read_object(path: str) -> Any:
        return await session.get(path)

    target = "support.apps.translating:app"
    made = IsolatedAttempts(app=app, begin=begin_with(target), children=children, may_park=may_park)
    steps = made.tools.steps
    waits = replace(steps.waits, read_object=read_object)
    made.tools = replace(made.tools, steps=replace(steps, waits=waits))
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_park_is_no_exception_to_a_middleware(
    attempts: IsolatedAttempts, kind: str, wait: str
) -> None:
    move = await attempts.run(job(kind, wait))
    assert move
    assert (move.target, move.reason) == PARKS[wait]
    assert seen == []


@pytest.mark.parametrize("kind", KINDS)
async def test_nor_is_a_handler_that_is_cancelled(attempts: IsolatedAttempts, kind: str) -> None:
    move = await attempts.run(job(kind, "cancelled"))
    assert move
    error: Any = move.fields["error"]
    assert (move.reason, error["type"]) == (Reason.HANDLER_FAILED, "HandlerExitError")
    assert "cancelled itself" in error["message"]
    assert seen == []


@pytest.mark.parametrize("kind", KINDS)
async def test_nor_is_a_kept_result_that_does_not_fit(
    attempts: IsolatedAttempts, kind: str
) -> None:
    kept = {"charge": step_record(attempt=1, started=NOW, now=NOW, size=1, result="odd")}
    move = await attempts.run(job(kind, "kept", steps=kept))
    assert move
    error: Any = move.fields["error"]
    assert (move.target, error["type"]) == (Phase.DEAD_LETTER, "StepError")
    assert "step 'charge' does not fit its type" in error["message"]
    assert seen == []
