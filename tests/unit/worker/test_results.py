"""Where results are kept: in the job, in the store, or nowhere, and then why."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from asyncjob import WorkerApp
from asyncjob.app.context import Stop
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import (
    Address,
    AllowList,
    Store,
    StoreForbiddenError,
    StoreUnavailableError,
    fetch,
)
from asyncjob_worker.execution.io_retry import AttemptStopped
from asyncjob_worker.execution.object_store import BoundedThreads, ObjectStoreClient
from asyncjob_worker.execution.results import ResultStore, looks_large
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import OffloadSettings, Settings
from support.parts.worker_parts import held

LARGE = "x" * 100
MAX = 40


class BrokenStore(Store):
    """Raises what it is told to, in turn, then works."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.writes = 0

    def write(self, address: Address, data: bytes, root: Address) -> None:
        self.writes += 1
        if self.errors:
            raise self.errors.pop(0)
        super().write(address, data, root)


class HangingStore(Store):
    """Writes only once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.writing = False

    def write(self, address: Address, data: bytes, root: Address) -> None:
        self.writing = True
        self.begun.set()
        self.go.wait(30)
        self.writing = False
        super().write(address, data, root)


@pytest.fixture
def url(tmp_path: Path) -> Address:
    return Address.folder(f"file://{tmp_path}")


def results(url: Address | None, store: Store | None = None, **changes: Any) -> ResultStore:
    offload = OffloadSettings(url, limit=changes.pop("limit", 1000))
    settings = Settings(max_free_json=MAX, offload=offload, **changes)
    transfers = ObjectStoreClient(store or offload.store(), threads=2, timeout=30)
    return ResultStore(settings, transfers)


def files_in(folder: Path) -> list[Path]:
    return [*folder.rglob("*")]


async def keep(of: ResultStore, result: object, job: HeldJob | None = None) -> PhaseChange:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: Any) -> Any: ...

    return await of.store(job or held(), app.handlers["echo"], result)


async def test_a_small_result_stays_in_the_job(url: Address, tmp_path: Path) -> None:
    move = await keep(results(url), {"a": None})
    assert (move.fields["result"], move.fields["resultRef"]) == ({"a": None}, None)
    assert files_in(tmp_path) == []


async def test_a_large_result_is_in_the_store_and_the_job_refers_to_it(
    url: Address, tmp_path: Path
) -> None:
    move = await keep(results(url), LARGE)
    assert move.target is Phase.SUCCEEDED
    assert move.fields["result"] is None
    reference = ResultReference.model_validate(move.fields["resultRef"])
    assert reference.uri == f"file://{tmp_path}/results/ns/u1/1-c1.json"
    assert reference.size_bytes == 102
    assert fetch(reference, allowed=AllowList((url,)), store=Store()) == LARGE


async def test_a_result_as_large_as_the_limit_stays_in_the_job(url: Address) -> None:
    assert (await keep(results(url), "x" * (MAX - 2))).fields["resultRef"] is None
    assert (await keep(results(url), "x" * (MAX - 1))).fields["resultRef"] is not None


async def test_without_a_store_the_refusal_says_how_to_have_one() -> None:
    move = await keep(results(None), LARGE)
    assert move.reason is Reason.RESULT_REFUSED
    assert move.fields["message"] == (
        "the result has 102 bytes, the limit is 40; "
        "start the worker with --offload-url to keep larger results in a store"
    )


async def test_a_result_over_the_stores_limit_is_refused(url: Address) -> None:
    move = await keep(results(url, limit=101), LARGE)
    assert move.reason is Reason.RESULT_REFUSED
    assert move.fields["message"] == "the result has 102 bytes, the limit is 101"


@pytest.mark.parametrize("result", [object(), float("nan"), ["x" * 100_000, 2**70]])
async def test_what_is_no_json_is_refused_however_large(result: object, url: Address) -> None:
    assert (await keep(results(url), result)).reason is Reason.RESULT_REFUSED


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncjob.kube.pacing.ExponentialBackoff.next_delay", lambda _: 0.0)


@pytest.mark.usefixtures("hurried")
async def test_an_outage_of_the_store_is_outlasted(url: Address) -> None:
    store = BrokenStore(*[StoreUnavailableError("away")] * 20)
    move = await keep(results(url, store), LARGE)
    assert (move.target, store.writes) == (Phase.SUCCEEDED, 21)


@pytest.mark.usefixtures("hurried")
async def test_a_store_that_refuses_again_and_again_makes_a_dead_letter(url: Address) -> None:
    store = BrokenStore(*[StoreForbiddenError("cannot write: not allowed")] * 20)
    move = await keep(results(url, store), LARGE)
    assert (move.reason, store.writes) == (Reason.RESULT_REFUSED, 4)
    assert move.fields["message"] == "the result has 102 bytes, but cannot write: not allowed"


@pytest.mark.usefixtures("hurried")
async def test_a_refusal_that_passes_does_no_harm(url: Address) -> None:
    store = BrokenStore(*[StoreForbiddenError("credentials are being renewed")] * 3)
    assert (await keep(results(url, store), LARGE)).target is Phase.SUCCEEDED


@pytest.mark.parametrize("why", [Stop.FENCED, Stop.CANCELLED, Stop.TIMED_OUT])
async def test_a_stop_ends_the_upload_at_once(url: Address, why: Stop) -> None:
    store, job = HangingStore(), held()
    keeping = asyncio.ensure_future(keep(results(url, store, stop_grace_seconds=30), LARGE, job))
    await asyncio.to_thread(store.begun.wait, 10)
    job.stop(why)
    with pytest.raises(AttemptStopped) as end:
        await keeping
    store.go.set()
    assert end.value.why is why


async def test_a_draining_worker_gives_the_upload_a_moment(url: Address) -> None:
    store, job = HangingStore(), held()
    keeping = asyncio.ensure_future(keep(results(url, store, stop_grace_seconds=30), LARGE, job))
    await asyncio.to_thread(store.begun.wait, 10)
    job.stop(Stop.DRAINING)
    store.go.set()
    assert (await keeping).target is Phase.SUCCEEDED


async def test_a_draining_worker_waits_for_the_upload_no_longer_than_that(url: Address) -> None:
    store, job = HangingStore(), held()
    keeping = asyncio.ensure_future(keep(results(url, store, stop_grace_seconds=0.01), LARGE, job))
    await asyncio.to_thread(store.begun.wait, 10)
    job.stop(Stop.DRAINING)
    with pytest.raises(AttemptStopped) as end:
        await keeping
    store.go.set()
    assert end.value.why is Stop.DRAINING


async def test_an_attempt_that_times_out_says_what_it_waited_for(
    url: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, waits = held(), asyncio.Event()

    def pause(_: object) -> float:
        waits.set()
        return 3600.0

    monkeypatch.setattr("asyncjob.kube.pacing.ExponentialBackoff.next_delay", pause)
    store = BrokenStore(StoreUnavailableError("the store is away"))
    keeping = asyncio.ensure_future(keep(results(url, store), LARGE, job))
    await waits.wait()
    job.stop(Stop.TIMED_OUT)
    with pytest.raises(AttemptStopped) as end:
        await keeping
    assert end.value.detail == "the result could not be stored: the store is away"


async def test_the_event_loop_goes_on_while_a_store_hangs(url: Address) -> None:
    store, job = HangingStore(), held()
    keeping = asyncio.ensure_future(keep(results(url, store), LARGE, job))
    await asyncio.to_thread(store.begun.wait, 10)
    # Whatever else there is to do here gets done, although the write has not returned.
    assert await asyncio.to_thread(lambda: store.writing) is True
    store.go.set()
    assert (await keeping).target is Phase.SUCCEEDED


async def test_calls_that_hang_are_given_up_and_leave_room_for_so_many_only() -> None:
    threads, go = BoundedThreads(1), threading.Event()
    with pytest.raises(TimeoutError):
        await threads.run(lambda: go.wait(30), seconds=0.01)
    with pytest.raises(TimeoutError, match="too many requests to the store hang"):
        await threads.run(lambda: True, seconds=10)
    go.set()
    while True:
        try:
            assert await threads.run(lambda: 7, seconds=10) == 7
        except TimeoutError:
            await asyncio.sleep(0)
        else:
            break


async def test_what_a_call_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await BoundedThreads(1).run(lambda: 1 // 0, seconds=10)


class Page(BaseModel):
    text: str


@pytest.mark.parametrize(
    ("value", "large"),
    [
        (None, False),
        ({"a": [1, 2, {"b": "c"}]}, False),
        ("x" * 100_000, True),
        (Page(text="x" * 100_000), True),
        (Page(text="x"), False),
        (list(range(5000)), True),
        ([[[0] * 100] * 10] * 10, True),
        ({"a": {"b": ["y" * 40_000, "z" * 40_000]}}, True),
    ],
)
def test_a_quick_look_tells_large_results(value: object, *, large: bool) -> None:
    assert looks_large(value) is large


def test_a_quick_look_at_a_circle_ends() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert looks_large(circle)
