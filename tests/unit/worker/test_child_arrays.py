"""Arrays that a handler has submitted: created once, found again, read until they have ended."""

import asyncio
from typing import Any

import pytest

from asyncjob.app.child_arrays import ChildArrayOptions, Items, build_child_array_manifest
from asyncjob.app.child_handles import Child
from asyncjob.app.child_jobs import ChildRef, ItemCounts, read_child
from asyncjob.app.child_manifest import ChildManifest, ParentJob
from asyncjob.app.errors import (
    ChildGoneError,
    SubmitConflictError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.errors import AlreadyExistsError, ApiError, ForbiddenError, ObjectNotFoundError
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob_worker.execution.children.child_poller import ChildPoller
from support.parts.child_jobs import children, finished, stored, submit
from support.parts.worker_parts import Call, ScriptedSession, job

ARRAYS = "/apis/asyncjob.dev/v1alpha1/namespaces/ns/asyncarrays"
JOBS = "/apis/asyncjob.dev/v1alpha1/namespaces/ns/asyncjobs"
THERE = AlreadyExistsError("there", status=409, reason="AlreadyExists")
GONE = ObjectNotFoundError("gone", status=404, reason="NotFound")
NO_RIGHT = 'asyncarrays.asyncjob.dev is forbidden: User "w" cannot create resource "asyncarrays"'


def an_array(items: Items = 3, **options: Any) -> ChildManifest:
    parent = ParentJob("j", "u1", "images", 5)
    return build_child_array_manifest(parent, "thumb", items, ChildArrayOptions(**options))


def array(name: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": name}
    return {"kind": "AsyncArray", "metadata": meta, "spec": {"type": "thumb"}, "status": status}


async def test_an_array_is_created_with_one_request_and_is_a_child_of_its_kind() -> None:
    order = an_array()
    session = ScriptedSession(create=[stored(order)])
    assert await submit(session, order) == ChildRef(order.name, "c1", "AsyncArray")
    assert [(call.path, call.body) for call in session.calls] == [(ARRAYS, order.manifest)]
    assert order.manifest["kind"] == "AsyncArray"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (7, {"count": 7}),
        ("s3://bucket/rows.csv", {"from": {"uri": "s3://bucket/rows.csv"}}),
        (["a", {"b": 1}], {"inline": ["a", {"b": 1}]}),
        (range(3), {"inline": [0, 1, 2]}),
    ],
)
def test_items_are_a_number_a_file_or_the_items_themselves(items: Any, expected: Any) -> None:
    spec: Any = an_array(items, chunk_size=5, ttl=60).manifest["spec"]
    assert spec["items"] == expected
    assert (spec["queue"], spec["priority"]) == ("images", 5)
    assert (spec["chunkSize"], spec["ttlSecondsAfterFinished"]) == (5, 60)


def test_an_array_has_the_name_of_its_key_or_of_all_that_is_given() -> None:
    assert an_array(3).name == an_array(3).name != an_array(4).name
    assert an_array(3, key="k").name == an_array(4, key="k").name
    assert an_array(3, key="k").fingerprint != an_array(4, key="k").fingerprint
    assert an_array(3, name="mine").name == "mine"


def test_how_an_array_runs_does_not_make_it_another_one() -> None:
    tuned = an_array(3, chunk_size=7, parallelism=2, ttl=5)
    assert (tuned.name, tuned.fingerprint) == (an_array(3).name, an_array(3).fingerprint)


@pytest.mark.parametrize("items", [{"a": 1}, {"a", "b"}, b"abc", True, iter([1]), None])
def test_what_has_no_order_or_is_no_list_is_refused(items: Any) -> None:
    with pytest.raises(SubmitRefusedError, match="give a list, a number, or the URI of a file"):
        an_array(items)


async def test_an_array_that_is_there_already_is_read_by_its_own_path() -> None:
    order = an_array()
    session = ScriptedSession(create=[THERE], get=[stored(order, "c7")])
    assert await submit(session, order) == ChildRef(order.name, "c7", "AsyncArray")
    assert session.calls[-1].path == f"{ARRAYS}/{order.name}"


async def test_an_array_of_somebody_else_is_not_taken_for_a_child() -> None:
    order = an_array(name="mine")
    other = stored(order)
    other["metadata"] = {**other["metadata"], "labels": {}}
    with pytest.raises(SubmitConflictError, match="there is an array mine that is not a child"):
        await submit(ScriptedSession(create=[THERE], get=[other]), order)


async def test_who_may_not_create_arrays_is_told_of_the_role() -> None:
    error = ForbiddenError(NO_RIGHT, status=403, reason="Forbidden")
    with pytest.raises(SubmitForbiddenError, match="asyncjob-worker-children") as caught:
        await submit(ScriptedSession(create=[error]), an_array())
    assert str(caught.value).startswith("array j-")


async def test_an_array_is_read_until_it_has_ended() -> None:
    ended = array("a", phase="Failed", total=4, succeeded=2, failed=2, failedItems="1-2")
    session = ScriptedSession(get=[array("a", phase="Running"), array("a"), ended])
    view = await Child(ChildRef("a", "a", "AsyncArray"), children(session)).wait()
    assert (view.phase, view.succeeded, view.type) == (ArrayPhase.FAILED, False, "thumb")
    assert view.items == ItemCounts(4, 2, 2, "1-2")
    assert [call.path for call in session.calls] == [f"{ARRAYS}/a"] * 3


async def test_an_array_that_is_gone_is_told_as_a_child_is() -> None:
    session = ScriptedSession(get=[GONE])
    with pytest.raises(ChildGoneError, match="array a has been deleted"):
        await Child(ChildRef("a", "a", "AsyncArray"), children(session)).wait()


def test_a_phase_that_is_not_known_here_is_an_error() -> None:
    with pytest.raises(ValueError, match="Sideways"):
        read_child(array("a", phase="Sideways"))


async def test_which_children_are_unfinished_is_known_of_arrays_by_reading_each() -> None:
    lists: list[str] = []

    class Listing(ScriptedSession):
        async def list(self, path: str, params: Any = None, *, accept: str = "") -> Any:
            assert params
            assert accept
            lists.append(path)
            yield job(name="c", uid="c")

    def answer(call: Call) -> Any:
        name = call.path.rpartition("/")[2]
        if call.path.startswith(ARRAYS):
            return array(name, phase="Succeeded" if name == "done" else "Running")
        return finished(name, name) if name == "d" else job(name=name, uid=name)

    session = Listing(get=[answer])
    poller = ChildPoller(session.session, "ns", "u1", lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    refs = [ChildRef(name, name) for name in ("c", "d")]
    refs += [ChildRef(name, name, "AsyncArray") for name in ("done", "open")]
    waits = [asyncio.ensure_future(poller.until_finished(ref, None)) for ref in refs]
    await asyncio.sleep(0)
    assert await poller.unfinished() == {"c", "open"}
    await asyncio.sleep(0)
    assert waits[2].done()
    for one in waits:
        one.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def test_no_jobs_are_listed_for_arrays_alone() -> None:
    session = ScriptedSession(get=[array("a", phase="Running"), ApiError("away", status=503)])
    poller = ChildPoller(session.session, "ns", "u1", lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    wait = asyncio.ensure_future(poller.until_finished(ChildRef("a", "a", "AsyncArray"), None))
    for _ in range(3):
        await asyncio.sleep(0)
    with pytest.raises(ApiError):
        await poller.unfinished()
    assert not wait.done()
    assert {call.path for call in session.calls} == {f"{ARRAYS}/a"}
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)
