"""A handler that runs again finds the children of earlier attempts by one list."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.child_handles import Child
from asyncjob.app.child_jobs import ChildRef
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError, ChildGoneError, SubmitConflictError
from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError, UnknownOutcomeError
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.children import earlier_children
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from support.parts.child_jobs import an_order, children, stored
from support.parts.worker_parts import ScriptedSession, held

SUCCEEDED: dict[str, Any] = {"phase": "Succeeded", "result": 7, "attempt": 1}
ORDERS = [an_order(number, key=str(number)) for number in range(3)]


class Namespace(ScriptedSession):
    """Lists these children whole, or fails, besides answering single requests."""

    def __init__(self, found: list[Any] | Exception, **script: Any) -> None:
        super().__init__(**{"create": [AlreadyExistsError()], **script})
        self.found = found
        self.lists = 0

    async def list(self, path: str, params: Any = None, *, accept: str = "") -> Any:
        assert path.endswith("/asyncjobs")
        if "PartialObjectMetadata" in accept:  # those that have not finished: none
            return
        assert params == {"labelSelector": "asyncjob.dev/parent=u1"}
        self.lists += 1
        await asyncio.sleep(0)
        if isinstance(self.found, Exception):
            raise self.found
        for one in self.found:
            yield one


def again(session: Namespace) -> AttemptChildJobs:
    """Return what submits the children of a second attempt."""
    return children(session, held(attempt=2))


async def submitted(own: AttemptChildJobs, *orders: Any) -> list[ChildRef]:
    return await asyncio.gather(*(asyncio.wrap_future(own.submit(order)) for order in orders))


async def test_children_that_have_succeeded_cost_one_list_whatever_their_number() -> None:
    session = Namespace([stored(order, f"c{n}", **SUCCEEDED) for n, order in enumerate(ORDERS)])
    own = again(session)
    refs = await submitted(own, *ORDERS)
    views = await asyncio.gather(*(Child(ref, own).wait() for ref in refs))
    assert refs == [ChildRef(order.name, f"c{n}") for n, order in enumerate(ORDERS)]
    assert [(view.uid, view.result) for view in views] == [("c0", 7), ("c1", 7), ("c2", 7)]
    # Those that were sent before the first had been met.
    assert {call.verb for call in session.calls} == {"create"}
    assert session.lists == 1


async def test_a_child_after_the_first_costs_no_request() -> None:
    session = Namespace([stored(order, f"c{n}", **SUCCEEDED) for n, order in enumerate(ORDERS)])
    own = again(session)
    for order in ORDERS:
        await submitted(own, order)
    assert (session.lists, len(session.calls)) == (1, 1)


async def test_an_attempt_that_meets_none_of_them_lists_nothing() -> None:
    [order, *_] = ORDERS
    session = Namespace([], create=[stored(order)])
    await submitted(again(session), order)
    assert (session.lists, len(session.calls)) == (0, 1)


async def test_a_first_attempt_lists_nothing() -> None:
    [order, *_] = ORDERS
    session = Namespace([], get=[stored(order)])
    await submitted(children(session, held(attempt=1)), order)
    assert (session.lists, [call.verb for call in session.calls]) == (0, ["create", "get"])


async def test_a_child_that_is_not_there_yet_is_created() -> None:
    [order, new, _] = ORDERS
    session = Namespace([stored(order)], create=[AlreadyExistsError(), stored(new, "c2")])
    own = again(session)
    assert [ref.uid for ref in await submitted(own, order)] == ["c1"]
    assert [ref.uid for ref in await submitted(own, new)] == ["c2"]
    assert session.calls[-1].body == new.manifest


@pytest.mark.parametrize("phase", ["DeadLetter", "Running"])
async def test_what_may_change_is_read_when_it_is_waited_for(phase: str) -> None:
    [order, *_] = ORDERS
    session = Namespace([stored(order, phase=phase)], get=[stored(order, **SUCCEEDED)])
    own = again(session)
    [ref] = await submitted(own, order)
    assert (await Child(ref, own).wait()).succeeded
    assert [call.verb for call in session.calls] == ["create", "get"]


async def test_other_content_under_the_same_key_is_refused() -> None:
    session = Namespace([stored(an_order(99, key="0"))])
    with pytest.raises(SubmitConflictError, match="key '0' was used"):
        await submitted(again(session), ORDERS[0])


async def test_without_an_answer_each_is_asked_for_by_itself() -> None:
    [order, *_] = ORDERS
    session = Namespace(
        UnknownOutcomeError("reset"),
        create=[AlreadyExistsError()],
        get=[stored(order, **SUCCEEDED)],
    )
    own = again(session)
    with capture_logs() as lines:
        [ref] = await submitted(own, order)
        await submitted(own, order)
    assert ref.uid == "c1"
    assert [line["event"] for line in lines] == ["children not listed"]
    assert (session.lists, len(session.calls)) == (1, 4)


async def test_one_that_was_deleted_after_the_list_is_made_when_it_is_submitted_once_more() -> None:
    [order, *_] = ORDERS
    session = Namespace(
        [stored(order, phase="Running")],
        get=[ObjectNotFoundError()],
        create=[AlreadyExistsError(), stored(order, "new")],
    )
    own = again(session)
    [ref] = await submitted(own, order)
    with pytest.raises(ChildGoneError):
        await Child(ref, own).wait()
    [ref] = await submitted(own, order)
    assert ref.uid == "new"


async def test_results_beyond_the_room_for_them_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(earlier_children, "MAX_RESULT_BYTES_KEPT", 120)
    large = {**SUCCEEDED, "result": "x" * 70}
    found = [stored(order, f"c{n}", **large) for n, order in enumerate(ORDERS[:2])]
    session = Namespace(found, get=[found[1]])
    own = again(session)
    refs = await submitted(own, *ORDERS[:2])
    views = [await Child(ref, own).wait() for ref in refs]
    assert [view.result for view in views] == ["x" * 70] * 2
    assert [call.path.rpartition("/")[2] for call in session.made("get")] == [ORDERS[1].name]


async def test_a_phase_of_a_newer_version_is_told_to_who_waits() -> None:
    [order, *_] = ORDERS
    session = Namespace([stored(order, phase="Unheard")], get=[stored(order, phase="Unheard")])
    own = again(session)
    [ref] = await submitted(own, order)
    with pytest.raises(ValueError, match="Unheard"):
        await Child(ref, own).wait()


async def test_an_attempt_that_is_over_finds_nothing() -> None:
    of = held(attempt=2)
    own = children(Namespace([stored(ORDERS[0])]), of)
    of.stop(Stop.FENCED)
    with pytest.raises(AttemptOverError):
        await submitted(own, ORDERS[0])


async def test_a_list_that_is_not_answered_ends_with_the_attempt() -> None:
    asked = asyncio.Event()

    class Silent(Namespace):
        async def list(self, *_: Any, **__: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()
            yield {}

    own = again(Silent([]))
    submission = own.submit(ORDERS[0])
    await asked.wait()
    own.stop()
    [end] = await asyncio.gather(asyncio.wrap_future(submission), return_exceptions=True)
    assert isinstance(end, asyncio.CancelledError)
    assert len(asyncio.all_tasks()) == 1


async def test_a_list_that_takes_long_holds_up_no_submission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(earlier_children, "LIST_SECONDS", 0.01)

    class Slow(Namespace):
        async def list(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()
            yield {}

    own = again(Slow([], get=[stored(ORDERS[0])]))
    assert [ref.uid for ref in await submitted(own, ORDERS[0])] == ["c1"]
    own.stop()


async def test_what_was_found_long_ago_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    [first, second, _] = ORDERS
    session = Namespace(
        [stored(first), stored(second, "old")],
        create=[AlreadyExistsError(), stored(second, "new")],
    )
    own = again(session)
    await submitted(own, first)
    later = boottime() + earlier_children.KNOWN_SECONDS
    monkeypatch.setattr(earlier_children, "boottime", lambda: later)
    assert [ref.uid for ref in await submitted(own, second)] == ["new"]


async def test_a_result_that_is_deeper_than_any_is_read_by_who_waits_for_it() -> None:
    deep: Any = 7
    for _ in range(300):
        deep = [deep]
    found = [stored(ORDERS[0], phase="Succeeded", result=deep), stored(ORDERS[1], "c2")]
    own = again(Namespace(found))
    assert [ref.uid for ref in await submitted(own, *ORDERS[:2])] == ["c1", "c2"]
