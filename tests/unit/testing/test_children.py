"""Child jobs of a handler under test: seen, run, waited for on the fake clock."""

import asyncio
from typing import Any

import pytest

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob.app.errors import SubmitConflictError, SubmitRefusedError
from asyncjob.testing import FakeCluster, Phase, Reason, run_handler

app = WorkerApp()


@app.handler("double")
async def double(job: JobContext, payload: int) -> int:
    await asyncio.sleep(100)
    return 2 * payload


@app.handler("sums")
async def sums(job: JobContext, payload: list[int]) -> Any:
    children = [await job.submit("double", each) for each in payload]
    seen = [await child.wait(check=True) for child in children]
    assert {child.name for child in seen} == {child.name for child in await job.children()}
    return sum(child.result for child in seen if isinstance(child.result, int))


@app.handler("sums-sync")
def sums_sync(job: JobContext, payload: list[int]) -> Any:
    children = [job.submit("double", each).result() for each in payload]
    return [child.wait().result().result for child in children]


@app.handler("submits")
async def submits(job: JobContext, payload: dict[str, Any]) -> None:
    job.submit("unknown", **payload)


@app.handler("waits")
async def waits(job: JobContext, payload: float | None) -> str:
    child = await job.submit("unknown", key="one")
    await job.progress(50)
    try:
        await child.wait(payload)
    except TimeoutError as error:
        return str(error).replace(child.name, "<child>")
    return "finished"


@app.handler("clashes")
async def clashes(job: JobContext) -> None:
    await job.submit("unknown", 1, key="same")
    await job.submit("unknown", 2, key="same")


@pytest.mark.parametrize(("type_", "result"), [("sums", 6), ("sums-sync", [2, 4])])
async def test_children_run_and_their_results_come_back(type_: str, result: Any) -> None:
    run = await run_handler(app, type_, [1, 2], queue="own", priority=3)
    assert run.result == result
    assert [child.phase for child in run.children] == [Phase.SUCCEEDED] * 2
    spec = run.children[0].model.spec
    assert (spec.queue, spec.priority) == ("own", 3)
    assert run.clock.elapsed == 100


async def test_what_is_submitted_and_not_waited_for_is_there_at_the_end() -> None:
    run = await run_handler(app, "submits", {"payload": [1], "not_before": "2027-01-01T00:00:00Z"})
    (child,) = run.children
    assert (run.outcome.phase, child.model.spec.payload) == (Phase.SUCCEEDED, [1])
    assert child.model.spec.not_before == "2027-01-01T00:00:00Z"


async def test_waiting_has_its_time_limit_on_the_fake_clock() -> None:
    run = await run_handler(app, "waits", 30)
    assert run.result == "child <child> has not finished within 30.0 s"
    assert run.clock.elapsed == 30


async def test_a_cancelled_parent_stops_waiting_and_leaves_its_child_alone() -> None:
    async with run_handler(app, "waits", None) as run:
        await run.until(lambda: run.progress)
        await run.cancel()
    assert run.outcome.reason is Reason.CANCEL_REQUESTED
    assert [child.phase for child in run.children] == [Phase.QUEUED]


@app.handler("submits-late")
async def submits_late(job: JobContext) -> str:
    await job.progress(50)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        late = job.submit("unknown")
        await late
    return "not stopped"


async def test_what_is_submitted_after_the_stop_stops_where_it_is_awaited() -> None:
    async with run_handler(app, "submits-late") as run:
        await run.until(lambda: run.progress)
        await run.cancel()
    assert run.outcome.reason is Reason.CANCEL_REQUESTED
    assert not run.children


async def test_an_attempt_after_a_crash_finds_the_children_of_the_one_before() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("sums", [1, 2])
        await cluster.run_until(lambda: len(job.children) == 2)
        await job.crash()
        await cluster.run_until_idle()
        assert (job.result, len(job.children), job.status.crashes) == (6, 2, 1)


async def test_submissions_that_cannot_be_right_fail_as_on_a_worker() -> None:
    clash = await run_handler(app, "clashes")
    assert isinstance(clash.error, SubmitConflictError)
    bad = await run_handler(app, "submits", {"priority": 5000})
    assert isinstance(bad.error, SubmitRefusedError)


@app.handler("gathers")
async def gathers(job: JobContext, payload: list[int]) -> list[Any]:
    children = [await job.submit("double", each) for each in payload]
    views = await job.gather(*children, *children[:1], check=True)
    assert views[-1:] == views[:1]
    return [view.result for view in views[: len(children)]]


@app.handler("gathers-sync")
def gathers_sync(job: JobContext, payload: list[int]) -> list[Any]:
    children = [job.submit("double", each).result() for each in payload]
    return [view.result for view in job.gather(*children).result()]


@app.handler("gathers-in-time")
async def gathers_in_time(job: JobContext, payload: float) -> list[str]:
    children = [await job.submit("double", each) for each in (1, 2)]
    said = []
    for _ in range(2):
        try:
            await job.gather(*children, timeout=payload)
        except TimeoutError as error:
            said.append(str(error).replace(children[0].name, "<child>"))
    return said


@app.handler("breaks")
async def breaks(job: JobContext) -> None:
    raise Fail("no")


@app.handler("checks")
async def checks(job: JobContext, payload: bool) -> Any:
    children = [await job.submit("double", 1), await job.submit("breaks")]
    return [view.phase for view in await job.gather(*children, check=payload)]


@pytest.mark.parametrize("type_", ["gathers", "gathers-sync"])
async def test_a_parent_waits_for_its_children_without_a_slot(type_: str) -> None:
    async with FakeCluster(app, concurrency=1) as cluster:
        parents = [await cluster.submit(type_, [one, 2]) for one in range(4)]
        await cluster.run_until(lambda: parents[3].status.waiting)
        (waiting,) = parents[3].status.waiting or []
        assert waiting.children is not None
        assert {one.name for one in waiting.children} == {one.name for one in parents[3].children}
        assert parents[3].reason is Reason.WAITING_FOR_CHILDREN
        await cluster.run_until_idle()
        assert [one.result for one in parents] == [[0, 4], [2, 4], [4, 4], [6, 4]]
        assert [one.status.parks for one in parents] == [1] * 4
        assert parents[0].status.retries == 0


async def test_each_limit_of_a_wait_counts_once() -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit("gathers-in-time", 30.0)
        await cluster.run_until_idle()
        late = "children <child> and 1 more have not finished within 30.0 s"
        assert parent.result == [late, late]
        assert cluster.clock.elapsed == 100


async def test_a_gather_that_checks_raises_for_the_first_that_failed() -> None:
    async with FakeCluster(app) as cluster:
        lenient, strict = (
            await cluster.submit("checks", False),
            await cluster.submit("checks", True),
        )
        await cluster.run_until(lambda: lenient.result is not None and strict.status.error)
        assert lenient.result == [Phase.SUCCEEDED, Phase.DEAD_LETTER]
        assert strict.status.error is not None
        assert strict.status.error.type == "ChildFailedError"


async def test_a_parked_parent_that_is_cancelled_ends_at_once() -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit("gathers", [1])
        await cluster.run_until(lambda: parent.status.waiting)
        await parent.cancel()
        await cluster.run_until(lambda: parent.phase is Phase.CANCELLED)
        assert (parent.reason, parent.status.waiting) == (Reason.CANCEL_REQUESTED, None)


async def test_nothing_to_gather_is_over_at_once() -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit("gathers", [])
        await cluster.run_until_idle()
        assert (parent.result, parent.status.parks or 0) == ([], 0)


@app.handler("first-of")
async def first_of(job: JobContext, payload: dict[str, Any]) -> str:
    children = [await job.submit("double", each) for each in (1, 2)]
    cap = job.sleep("cap", hours=1) if payload["other"] == "sleep" else job.signal("approval")
    waits = [_named("kids", job.gather(*children)), _named("cap", cap)]
    tasks = [asyncio.ensure_future(one) for one in waits[:: 1 if payload["kids_first"] else -1]]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for one in rest:
        one.cancel()
    return done.pop().result()


async def _named(name: str, call: Any) -> str:
    await call
    return name


@pytest.mark.parametrize("other", ["sleep", "signal"])
@pytest.mark.parametrize("kids_first", [True, False])
async def test_a_park_beside_children_names_them_too(other: str, kids_first: bool) -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit("first-of", {"other": other, "kids_first": kids_first})
        await cluster.run_until(lambda: parent.status.waiting)
        kinds = [one.kind for one in parent.status.waiting or []]
        assert set(kinds) == {"Children", other.capitalize()}
        await cluster.run_until(lambda: parent.phase is Phase.SUCCEEDED)
        assert parent.result == "kids"
        assert cluster.clock.elapsed < 200
        assert parent.status.parks == 1


async def test_a_child_that_is_gathered_twice_is_answered_twice() -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit("gathers", [2, 2, 3])
        await cluster.run_until_idle()
        assert parent.result == [4, 4, 6]
        assert len(parent.children) == 2


@pytest.mark.parametrize("clashing", [False, True])
async def test_before_a_park_all_that_was_submitted_is_there(clashing: bool) -> None:
    own = WorkerApp()

    @own.handler("job")
    async def handle(job: JobContext) -> None:
        for number in range(12):
            job.submit("leaf", number, key="same" if clashing else str(number))
        await job.sleep("nap", hours=1)

    @own.handler("leaf")
    async def leaf(job: JobContext, payload: int) -> None: ...

    async with FakeCluster(own) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until(lambda: job.phase not in {Phase.QUEUED, Phase.RUNNING})
        stored = len(cluster.jobs) - 1
        assert (job.phase, stored) == (Phase.SCHEDULED, 1 if clashing else 12)
        await cluster.run_until_idle()
        # The clash is told at the end of an attempt that does not park.
        assert job.phase == ("DeadLetter" if clashing else "Succeeded")
