"""Waiting for child jobs: how often one looks, and what ends a wait."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.child_handles import Child
from asyncjob.app.child_jobs import ChildRef, ChildView
from asyncjob.app.errors import ChildFailedError, ChildGoneError
from asyncjob.errors import (
    ExpiredError,
    ForbiddenError,
    ObjectNotFoundError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from asyncjob_worker.execution.children.child_poller import ChildPoller
from support.parts.child_jobs import children, finished
from support.parts.worker_parts import Call, Pauses, ScriptedSession, held, job


async def test_one_child_is_read_until_it_has_finished_less_and_less_often() -> None:
    pauses = Pauses()
    session = ScriptedSession(get=[job(name="c", uid="c1")] * 12 + [finished("c", "c1")])
    own = AttemptChildJobs(session.session, held(), pause=pauses)
    view = await Child(ChildRef("c", "c1"), own).wait()
    assert (view.phase, view.result, view.finished, view.succeeded) == (
        Phase.SUCCEEDED,
        "c1",
        True,
        True,
    )
    assert pauses.seconds[0] == 0.2
    assert pauses.seconds == sorted(pauses.seconds)
    assert pauses.seconds[-1] == 5.0
    assert len(session.calls) == 13


class Listing(ScriptedSession):
    """Lists jobs, besides answering single requests."""

    def __init__(self, *lists: list[Any], **script: Any) -> None:
        super().__init__(**script)
        self.answers = list(lists)
        self.lists: list[Any] = []

    async def list(self, path: str, params: Any = None, *, accept: str = "") -> Any:
        assert path.endswith("/asyncjobs")
        assert "as=PartialObjectMetadataList" in accept
        self.lists.append(params)
        for item in self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]:
            yield item


async def test_of_many_children_only_the_finished_are_read_each_once() -> None:
    names = [f"c{number}" for number in range(50)]
    running = [job(name=name, uid=name) for name in names]

    def answer(call: Call) -> Any:
        name = call.path.rpartition("/")[2]
        return finished(name, name)

    session = Listing(running, running, running[:1], [], get=[answer])
    own = children(session)
    waits = [Child(ChildRef(name, name), own).wait() for name in names]
    views = await asyncio.gather(*waits)
    assert [view.result for view in views] == names
    assert len(session.calls) == 50
    assert len(session.lists) == 3
    assert session.calls[-1].path.endswith("/c0")
    assert session.lists[0]["labelSelector"] == "asyncjob.dev/parent=u1"
    assert "status.phase!=Succeeded" in session.lists[0]["fieldSelector"]


async def test_a_new_wait_does_not_make_the_others_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred children that are waited for one after the other, and one that lasts.

    All at one moment of the loop: seconds that a busy machine takes would make the last one due.
    """
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 0.0)

    def answer(call: Call) -> Any:
        name = call.path.rpartition("/")[2]
        return job(name=name, uid=name) if name == "slow" else finished(name, name)

    session = Listing([job(name="slow", uid="slow")], get=[answer])
    own = AttemptChildJobs(session.session, held(), pause=lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    slow = asyncio.ensure_future(Child(ChildRef("slow", "slow"), own).wait())
    for number in range(100):
        name = f"c{number}"
        assert (await Child(ChildRef(name, name), own).wait()).result == name
    own.stop()
    await asyncio.gather(slow, return_exceptions=True)
    seen = [call.path.rpartition("/")[2] for call in session.calls]
    assert all(seen.count(f"c{number}") == 1 for number in range(100))
    assert len(seen) + len(session.lists) <= 102


async def test_a_child_that_cannot_be_read_fails_its_own_wait_only() -> None:
    def answer(call: Call) -> Any:
        name = call.path.rpartition("/")[2]
        return finished(name, name, **({"phase": "Unheard"} if name == "odd" else {}))

    own = children(Listing([], get=[answer]))
    waits = [Child(ChildRef(name, name), own).wait() for name in ("odd", "good")]
    odd, good = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(odd, ValueError)
    assert not isinstance(good, BaseException)
    assert good.succeeded


async def test_whatever_a_look_fails_with_nobody_waits_on_and_the_next_wait_looks_again() -> None:
    session = ScriptedSession(get=[RuntimeError("a fault of ours"), finished("c", "c1")])
    own = children(session)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        await Child(ChildRef("c", "c1"), own).wait()
    assert (await Child(ChildRef("c", "c1"), own).wait()).succeeded


async def test_a_wait_that_begins_as_the_last_look_ends_is_looked_at() -> None:
    last_look = asyncio.Event()

    def answer(call: Call) -> Any:
        last_look.set()
        name = call.path.rpartition("/")[2]
        return finished(name, name)

    session = ScriptedSession(get=[answer])
    watch = ChildPoller(session.session, "default", "u1", asyncio.sleep)

    async def wait_then() -> ChildView:
        await last_look.wait()
        return await watch.until_finished(ChildRef("second", "second"), None)

    second = asyncio.ensure_future(wait_then())
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        assert (await watch.until_finished(ChildRef("first", "first"), None)).succeeded
        assert (await second).succeeded


async def test_a_list_that_took_too_long_is_begun_again() -> None:
    class Slow(Listing):
        async def list(self, path: str, params: Any = None, *, accept: str = "") -> Any:
            async for item in super().list(path, params, accept=accept):
                yield item
            if len(self.lists) == 1:
                raise ExpiredError("the list took too long")

    session = Slow([], get=[lambda call: finished(*[call.path.rpartition("/")[2]] * 2)])
    own = children(session)
    with capture_logs() as logs:
        await asyncio.gather(*[Child(ChildRef(name, name), own).wait() for name in ("a", "b")])
    assert [entry["event"] for entry in logs] == ["cannot list child jobs"]


async def test_a_child_that_failed_raises_only_if_asked() -> None:
    dead = finished("c", "c1", phase="DeadLetter", reason="NotRetryable", message="no", result=None)
    child = Child(ChildRef("c", "c1"), children(ScriptedSession(get=[dead])))
    assert (await child.wait()).phase is Phase.DEAD_LETTER
    with pytest.raises(ChildFailedError, match=r"child c ended as DeadLetter \(NotRetryable: no\)"):
        await child.wait(check=True)


@pytest.mark.parametrize("answer", [ObjectNotFoundError(), job(name="c", uid="another")])
async def test_a_deleted_child_is_not_waited_for(answer: Any) -> None:
    child = Child(ChildRef("c", "c1"), children(ScriptedSession(get=[answer])))
    with pytest.raises(ChildGoneError, match="child c has been deleted"):
        await child.wait()


async def test_outages_are_waited_out_and_what_is_forbidden_is_not() -> None:
    session = ScriptedSession(get=[UnknownOutcomeError("away"), finished("c", "c1")])
    with capture_logs() as logs:
        await Child(ChildRef("c", "c1"), children(session)).wait()
    assert [entry["event"] for entry in logs] == ["cannot list child jobs"]
    with pytest.raises(ForbiddenError):
        await Child(
            ChildRef("c", "c1"), children(ScriptedSession(get=[ForbiddenError("no")]))
        ).wait()


async def test_a_wait_has_a_limit_and_then_nobody_looks() -> None:
    session = ScriptedSession(get=[job(name="c", uid="c1")])
    own = AttemptChildJobs(session.session, held(), pause=lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    with pytest.raises(TimeoutError, match=r"child c has not finished within 0\.01 s"):
        await Child(ChildRef("c", "c1"), own).wait(0.01)
    await asyncio.sleep(0)
    assert own._poller._task is None
