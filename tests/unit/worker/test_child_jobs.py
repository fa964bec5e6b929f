"""Submitting child jobs: once, for as long as the attempt lives, and with clear errors."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.child_jobs import ChildRef
from asyncjob.app.context import Stop
from asyncjob.app.errors import (
    AttemptOverError,
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.child_jobs import an_order, stored, submit
from support.parts.worker_parts import Call, Pauses, ScriptedSession, held, job

NO_RIGHT = 'asyncjobs.asyncjob.dev is forbidden: User "w" cannot create resource "asyncjobs"'
BY_POLICY = "ValidatingAdmissionPolicy 'payload-source.asyncjob.dev' denied: may not get secrets"


async def test_a_child_is_created_with_one_request() -> None:
    order = an_order()
    session = ScriptedSession(create=[stored(order)])
    assert await submit(session, order) == ChildRef(order.name, "c1")
    assert [(call.path, call.body) for call in session.calls] == [
        ("/apis/asyncjob.dev/v1alpha1/namespaces/ns/asyncjobs", order.manifest)
    ]


async def test_so_many_are_on_their_way_at_a_time_and_a_stop_holds_for_those_that_wait() -> None:
    of, orders = held(), [an_order(number) for number in range(5)]
    answer = asyncio.Event()

    class Slow(ScriptedSession):
        async def create(self, path: str, body: Any) -> Any:
            self.calls.append(Call("create", path, body))
            await answer.wait()
            return stored(orders[0])

    session = Slow()
    own = AttemptChildJobs(session.session, of, limiter=asyncio.Semaphore(2), pause=Pauses())
    sent = [asyncio.wrap_future(own.submit(order)) for order in orders]
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(session.calls) == 2
    of.stop(Stop.FENCED)
    answer.set()
    ends = await asyncio.gather(*sent, return_exceptions=True)
    assert [isinstance(end, AttemptOverError) for end in ends] == [False] * 2 + [True] * 3
    assert len(session.calls) == 2


async def test_children_that_are_on_their_way_are_listed_and_a_refused_one_breaks_no_list() -> None:
    answer = asyncio.Event()

    class Slow(ScriptedSession):
        made_so_far: tuple[Any, ...] = ()

        async def create(self, path: str, body: Any) -> Any:
            self.calls.append(Call("create", path, body))
            await answer.wait()
            if body == refused.manifest:
                raise InvalidError("no")
            self.made_so_far += (stored(order),)
            return stored(order)

        async def list(self, path: str, params: Any = None, *, accept: str = "") -> Any:
            self.calls.append(Call("list", path, accept, params or {}))
            for child in self.made_so_far:
                yield child

    order, refused = an_order(), an_order(2)
    own = AttemptChildJobs(Slow().session, held(), pause=Pauses())
    first = asyncio.wrap_future(own.submit(refused))
    own.submit(order)
    listed = asyncio.wrap_future(own.list())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not listed.done()
    answer.set()
    assert [child.name for child in await listed] == [order.name]
    with pytest.raises(SubmitRefusedError):
        await first


@pytest.mark.parametrize(
    "error", [UnknownOutcomeError("reset"), ThrottledError("slow down"), ConflictError("try again")]
)
async def test_what_may_pass_is_tried_until_it_does(error: ApiError) -> None:
    order = an_order()
    session = ScriptedSession(create=[error, error, stored(order)])
    with capture_logs():
        assert (await submit(session, order)).uid == "c1"
    assert len(session.calls) == 3


async def test_a_child_that_is_there_already_is_found() -> None:
    order = an_order(key="k")
    session = ScriptedSession(
        create=[AlreadyExistsError()], get=[UnknownOutcomeError(), stored(order)]
    )
    assert (await submit(session, order)).uid == "c1"


async def test_one_deleted_between_two_requests_is_created_again() -> None:
    order = an_order()
    session = ScriptedSession(
        create=[AlreadyExistsError(), stored(order, "new")], get=[ObjectNotFoundError()]
    )
    assert (await submit(session, order)).uid == "new"


async def test_a_key_used_for_other_content_is_said_by_name() -> None:
    order = an_order(2, key="k")
    session = ScriptedSession(create=[AlreadyExistsError()], get=[stored(an_order(1, key="k"))])
    with pytest.raises(SubmitConflictError, match="key 'k' was used by this job for a child with"):
        await submit(session, order)


async def test_a_job_of_somebody_else_is_not_taken_for_a_child() -> None:
    order = an_order(name="theirs")
    session = ScriptedSession(create=[AlreadyExistsError()], get=[job(name="theirs")])
    with pytest.raises(SubmitConflictError, match="there is a job theirs that is not a child"):
        await submit(session, order)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ForbiddenError(NO_RIGHT), SubmitForbiddenError, "--clusterrole=asyncjob-worker-children"),
        (ForbiddenError(BY_POLICY), SubmitForbiddenError, "may not get secrets$"),
        (InvalidError("spec.queue is wrong"), SubmitRefusedError, "spec.queue is wrong"),
        (TooLargeError("limit is 3"), SubmitRefusedError, "hand data over by reference: limit is"),
        (ObjectNotFoundError("no such type"), SubmitError, "no such type"),
    ],
)
async def test_what_never_passes_is_one_error_with_the_servers_words(
    error: ApiError, kind: type[SubmitError], words: str
) -> None:
    session = ScriptedSession(create=[error])
    with pytest.raises(kind, match=words):
        await submit(session, an_order())
    assert len(session.calls) == 1


def times_out(of: HeldJob) -> None:
    of.started_at = boottime() - 10_000


def loses_lease(of: HeldJob) -> None:
    of.sent_at = boottime() - 60


@pytest.mark.parametrize(
    "ends",
    [
        lambda of: of.stop(Stop.FENCED),
        lambda of: of.stop(Stop.CANCELLED),
        lambda of: setattr(of, "writing_outcome", True),
        times_out,
        loses_lease,
    ],
)
async def test_an_attempt_that_is_over_submits_nothing(ends: Any) -> None:
    of, session = held(), ScriptedSession()
    ends(of)
    with pytest.raises(AttemptOverError, match="is not submitted"):
        await submit(session, an_order(), of)
    assert session.calls == []


async def test_a_stop_between_two_tries_is_the_last_of_them() -> None:
    of = held()

    def fail(call: Call) -> ApiError:
        of.stop(Stop.FENCED)
        return UnknownOutcomeError("reset")

    session = ScriptedSession(create=[fail])
    with pytest.raises(AttemptOverError), capture_logs():
        await submit(session, an_order(), of)
    assert len(session.calls) == 1
