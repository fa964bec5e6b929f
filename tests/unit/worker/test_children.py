"""Submitting child jobs: once, for as long as the attempt lives, and with clear errors."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.app.child_errors import (
    AttemptOverError,
    ChildFailedError,
    ChildGoneError,
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.app.child_order import ChildOptions, ChildOrder, Parent, child_order
from asyncjob.app.children import Child, ChildRef
from asyncjob.app.stop import Stop
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.attempt import Attempt, Tools
from asyncjob_worker.children import AttemptChildren
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.settings import Settings
from support.worker_parts import Call, FakeSession, Pauses, held, job

NO_RIGHT = 'asyncjobs.asyncjob.dev is forbidden: User "w" cannot create resource "asyncjobs"'
BY_POLICY = "ValidatingAdmissionPolicy 'payload-source.asyncjob.dev' denied: may not get secrets"


def an_order(payload: Any = 1, **options: Any) -> ChildOrder:
    return child_order(Parent("j", "u1", "default"), "leaf", payload, ChildOptions(**options))


def stored(order: ChildOrder, uid: str = "c1", **status: Any) -> dict[str, Any]:
    """Return the child as the API server has it."""
    metadata: Any = {**order.body["metadata"], "uid": uid}  # type: ignore[dict-item]
    return {**order.body, "metadata": metadata, "status": status}


def finished(name: str, uid: str, **status: Any) -> dict[str, Any]:
    return job(name=name, uid=uid, **{"phase": "Succeeded", "result": uid, **status})


def children(session: FakeSession, of: HeldJob | None = None) -> AttemptChildren:
    return AttemptChildren(session.session, of or held(), pause=Pauses())


async def submit(session: FakeSession, order: ChildOrder, of: HeldJob | None = None) -> ChildRef:
    return await asyncio.wrap_future(children(session, of).submit(order))


async def test_a_child_is_created_with_one_request() -> None:
    order = an_order()
    session = FakeSession(create=[stored(order)])
    assert await submit(session, order) == ChildRef(order.name, "c1")
    assert [(call.path, call.body) for call in session.calls] == [
        ("/apis/asyncjob.dev/v1alpha1/namespaces/ns/asyncjobs", order.body)
    ]


async def test_so_many_are_on_their_way_at_a_time_and_a_stop_holds_for_those_that_wait() -> None:
    of, orders = held(), [an_order(number) for number in range(5)]
    answer = asyncio.Event()

    class Slow(FakeSession):
        async def create(self, path: str, body: Any) -> Any:
            self.calls.append(Call("create", path, body))
            await answer.wait()
            return stored(orders[0])

    session = Slow()
    own = AttemptChildren(session.session, of, gate=asyncio.Semaphore(2), pause=Pauses())
    sent = [asyncio.wrap_future(own.submit(order)) for order in orders]
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(session.calls) == 2
    of.stop(Stop.FENCED)
    answer.set()
    ends = await asyncio.gather(*sent, return_exceptions=True)
    assert [isinstance(end, AttemptOverError) for end in ends] == [False] * 2 + [True] * 3
    assert len(session.calls) == 2


@pytest.mark.parametrize(
    "error", [UnknownOutcomeError("reset"), ThrottledError("slow down"), ConflictError("try again")]
)
async def test_what_may_pass_is_tried_until_it_does(error: ApiError) -> None:
    order = an_order()
    session = FakeSession(create=[error, error, stored(order)])
    with capture_logs():
        assert (await submit(session, order)).uid == "c1"
    assert len(session.calls) == 3


async def test_a_child_that_is_there_already_is_found() -> None:
    order = an_order(key="k")
    session = FakeSession(create=[AlreadyExistsError()], get=[UnknownOutcomeError(), stored(order)])
    assert (await submit(session, order)).uid == "c1"


async def test_one_deleted_between_two_requests_is_created_anew() -> None:
    order = an_order()
    session = FakeSession(
        create=[AlreadyExistsError(), stored(order, "new")], get=[NotFoundError()]
    )
    assert (await submit(session, order)).uid == "new"


async def test_a_key_used_for_other_content_is_said_by_name() -> None:
    order = an_order(2, key="k")
    session = FakeSession(create=[AlreadyExistsError()], get=[stored(an_order(1, key="k"))])
    with pytest.raises(SubmitConflictError, match="key 'k' was used by this job for a child with"):
        await submit(session, order)


async def test_a_job_of_somebody_else_is_not_taken_for_a_child() -> None:
    order = an_order(name="theirs")
    session = FakeSession(create=[AlreadyExistsError()], get=[job(name="theirs")])
    with pytest.raises(SubmitConflictError, match="there is a job theirs that is no child"):
        await submit(session, order)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ForbiddenError(NO_RIGHT), SubmitForbiddenError, "--clusterrole=asyncjob-worker-children"),
        (ForbiddenError(BY_POLICY), SubmitForbiddenError, "may not get secrets$"),
        (InvalidError("spec.queue is wrong"), SubmitRefusedError, "spec.queue is wrong"),
        (TooLargeError("limit is 3"), SubmitRefusedError, "hand data over by reference: limit is"),
        (NotFoundError("no such type"), SubmitError, "no such type"),
    ],
)
async def test_what_never_passes_is_one_error_with_the_servers_words(
    error: ApiError, kind: type[SubmitError], words: str
) -> None:
    session = FakeSession(create=[error])
    with pytest.raises(kind, match=words):
        await submit(session, an_order())
    assert len(session.calls) == 1


def times_out(of: HeldJob) -> None:
    of.started_at = lease_seconds() - 10_000


def loses_lease(of: HeldJob) -> None:
    of.sent_at = lease_seconds() - 60


@pytest.mark.parametrize(
    "ends",
    [
        lambda of: of.stop(Stop.FENCED),
        lambda of: of.stop(Stop.CANCELLED),
        lambda of: setattr(of, "reporting", True),
        times_out,
        loses_lease,
    ],
)
async def test_an_attempt_that_is_over_submits_nothing(ends: Any) -> None:
    of, session = held(), FakeSession()
    ends(of)
    with pytest.raises(AttemptOverError, match="is not submitted"):
        await submit(session, an_order(), of)
    assert session.calls == []


async def test_a_stop_between_two_tries_is_the_last_of_them() -> None:
    of = held()

    def fail(call: Call) -> ApiError:
        of.stop(Stop.FENCED)
        return UnknownOutcomeError("reset")

    session = FakeSession(create=[fail])
    with pytest.raises(AttemptOverError), capture_logs():
        await submit(session, an_order(), of)
    assert len(session.calls) == 1


# ---- waiting


async def test_one_child_is_read_until_it_has_finished_less_and_less_often() -> None:
    pauses = Pauses()
    session = FakeSession(get=[job(name="c", uid="c1")] * 12 + [finished("c", "c1")])
    own = AttemptChildren(session.session, held(), pause=pauses)
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


class Listing(FakeSession):
    """Lists jobs, besides answering single requests."""

    def __init__(self, *pages: list[Any], **script: Any) -> None:
        super().__init__(**script)
        self.pages = list(pages)
        self.lists: list[Any] = []

    async def list(self, path: str, params: Any = None) -> Any:
        assert path.endswith("/asyncjobs")
        self.lists.append(params)
        for item in self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]:
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


async def test_a_child_that_failed_raises_only_if_asked() -> None:
    dead = finished("c", "c1", phase="DeadLetter", reason="NotRetryable", message="no", result=None)
    child = Child(ChildRef("c", "c1"), children(FakeSession(get=[dead])))
    assert (await child.wait()).phase is Phase.DEAD_LETTER
    with pytest.raises(ChildFailedError, match=r"child c ended as DeadLetter \(NotRetryable: no\)"):
        await child.wait(check=True)


@pytest.mark.parametrize("answer", [NotFoundError(), job(name="c", uid="another")])
async def test_a_deleted_child_is_not_waited_for(answer: Any) -> None:
    child = Child(ChildRef("c", "c1"), children(FakeSession(get=[answer])))
    with pytest.raises(ChildGoneError, match="child c has been deleted"):
        await child.wait()


async def test_outages_are_waited_out_and_what_is_forbidden_is_not() -> None:
    session = FakeSession(get=[UnknownOutcomeError("away"), finished("c", "c1")])
    with capture_logs() as logs:
        await Child(ChildRef("c", "c1"), children(session)).wait()
    assert [entry["event"] for entry in logs] == ["cannot look at children"]
    with pytest.raises(ForbiddenError):
        await Child(ChildRef("c", "c1"), children(FakeSession(get=[ForbiddenError("no")]))).wait()


async def test_a_wait_has_a_limit_and_then_nobody_looks() -> None:
    session = FakeSession(get=[job(name="c", uid="c1")])
    own = AttemptChildren(session.session, held(), pause=lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    with pytest.raises(TimeoutError, match=r"child c has not finished within 0\.01 s"):
        await Child(ChildRef("c", "c1"), own).wait(0.01)
    await asyncio.sleep(0)
    assert own._watch._looking is None


# ---- from handlers


@pytest.fixture
def tools() -> Iterator[Tools]:
    made = Tools.of(Settings(concurrency=1))
    yield made
    made.starts.close()


async def run(app: WorkerApp, session: FakeSession, tools: Tools, of: HeldJob) -> Move | None:
    own = Tools(
        tools.starts,
        tools.payloads,
        tools.results,
        children=lambda one: AttemptChildren(session.session, one, pause=Pauses()),
    )
    return await Attempt(of, app.handlers["echo"], app, Settings(), own).run()


async def test_a_success_counts_once_all_that_was_submitted_is_stored(tools: Tools) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> str:
        return job.submit("leaf", 1).name

    session = FakeSession(create=[UnknownOutcomeError("reset"), stored(an_order())])
    with capture_logs():
        move = await run(app, session, tools, held())
    assert move
    assert move.fields["result"] == an_order().name
    assert len(session.calls) == 2


@pytest.mark.parametrize("looks", [False, True])
async def test_an_error_that_nobody_has_seen_fails_the_attempt(tools: Tools, looks: bool) -> None:
    app = WorkerApp()

    @app.handler("echo")
    def echo(job: JobContext) -> str:
        sent = job.submit("leaf", 1)
        if looks:
            with pytest.raises(SubmitRefusedError):
                sent.result()
        return "done"

    move = await run(app, FakeSession(create=[InvalidError("no")]), tools, held())
    assert move
    assert move.target is (Phase.SUCCEEDED if looks else Phase.RETRYING)


async def test_after_the_handler_has_returned_nothing_more_is_sent_or_awaited(
    tools: Tools,
) -> None:
    app, kept = WorkerApp(), list[Any]()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        child = await job.submit("leaf", 1)
        kept.extend([job, child.wait()])

    order = an_order()
    session = FakeSession(create=[stored(order)], get=[stored(order, phase="Running")])
    await run(app, session, tools, held())
    with pytest.raises(AttemptOverError):
        await kept[0].submit("leaf", 2)
    with pytest.raises(asyncio.CancelledError):
        await kept[1]
    assert len(session.made("create")) == 1


async def test_a_stop_while_submissions_are_awaited_counts(tools: Tools) -> None:
    app, of = WorkerApp(), held()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        job.submit("leaf", 1)

    def drain(call: Call) -> ApiError:
        of.stop(Stop.DRAINING)
        return UnknownOutcomeError("reset")

    with capture_logs():
        move = await run(app, FakeSession(create=[drain]), tools, of)
    assert move
    assert move.target is Phase.QUEUED


async def test_result_in_the_event_loop_is_a_clear_mistake(tools: Tools) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        with pytest.raises(RuntimeError, match="await it in an async handler"):
            job.submit("leaf", 1).result()

    move = await run(app, FakeSession(create=[stored(an_order())]), tools, held())
    assert move
    assert move.target is Phase.SUCCEEDED


async def test_a_thread_that_waits_for_a_child_hears_of_the_stop_at_once(tools: Tools) -> None:
    app, of, heard = WorkerApp(), held(), list[str]()

    @app.handler("echo")
    def echo(job: JobContext) -> None:
        child = job.submit("leaf", 1).result()
        waiting = child.wait()
        of.stop(Stop.CANCELLED)
        try:
            waiting.result()
        except AttemptOverError:
            heard.append("over")

    order = an_order()
    session = FakeSession(create=[stored(order)], get=[stored(order, phase="Running")])
    own = Tools(
        tools.starts,
        tools.payloads,
        tools.results,
        children=lambda one: AttemptChildren(session.session, one),
    )
    move = await Attempt(of, app.handlers["echo"], app, Settings(), own).run()
    assert move
    assert (move.target, heard) == (Phase.CANCELLED, ["over"])
