"""Handlers of the contract tests: the same code in a fake cluster and in a real worker process.

They are driven by their payload and attempt alone, so that both backends see the same.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any

from pydantic import BaseModel

from asyncjob import (
    Fail,
    ItemContext,
    JobContext,
    Retry,
    RetryPolicy,
    SignalInvalid,
    SignalTimeout,
    WorkerApp,
)

app = WorkerApp()

FOREVER = 3600.0


class QuotaError(Exception):
    """An error with a category of the app's own."""


app.categorize(QuotaError, "Quota")

ERRORS: dict[str, type[Exception]] = {
    "network": ConnectionError,
    "timeout": TimeoutError,
    "value": ValueError,
    "lookup": KeyError,
    "quota": QuotaError,
    "other": RuntimeError,
}


class Order(BaseModel):
    """A payload with a schema."""

    number: int
    day: date = date(2026, 1, 1)


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    return payload


@app.handler("order", timeout=77, retry=RetryPolicy(max_retries=5, jitter=0.0))
async def order(job: JobContext, payload: Order) -> Order:
    return payload


@app.handler("default")
def default(job: JobContext, payload: int = 7) -> dict[str, Any]:
    return {"payload": payload, "request": dict(job.request)}


@app.handler("fails")
async def fails(job: JobContext, payload: list[str]) -> str:
    """Raise one error per attempt, then succeed."""
    if job.attempt <= len(payload):
        raise ERRORS[payload[job.attempt - 1]](f"attempt {job.attempt} goes wrong")
    return f"attempt {job.attempt}"


@app.handler("fails-sync")
def fails_sync(job: JobContext, payload: list[str]) -> str:
    if job.attempt <= len(payload):
        raise ERRORS[payload[job.attempt - 1]](f"attempt {job.attempt} goes wrong")
    return f"attempt {job.attempt}"


@app.handler("gives-up")
async def gives_up(job: JobContext, payload: dict[str, str]) -> None:
    raise Fail(**payload)


@app.handler("asks-again")
async def asks_again(job: JobContext, payload: dict[str, Any]) -> int:
    """Ask for another attempt so many times, out of an error that the policy may not retry."""
    if job.attempt <= payload["times"]:
        raise Retry("not yet", after=payload.get("after")) from TimeoutError()
    return job.attempt


@app.handler("reports")
async def reports(job: JobContext, payload: dict[str, Any]) -> None:
    """Report progress and checkpoints, then fail."""
    for number, value in enumerate(payload["checkpoints"]):
        await job.checkpoint(value)
        await job.progress(10 * number, f"step {number}")
    raise ValueError("after the reports")


@app.handler("resumes")
async def resumes(job: JobContext, payload: int) -> dict[str, Any]:
    """Save a checkpoint and hang; go on from it in the next attempt."""
    if job.last_checkpoint is None:
        await job.progress(40, "half way")
        await job.checkpoint({"done": payload, "deep": {"null": None}})
        await asyncio.sleep(FOREVER)
    return {"resumed": job.last_checkpoint, "attempt": job.attempt}


class Charge(BaseModel):
    """What a step of `steps` gives."""

    day: date
    note: str | None


@app.handler("steps")
async def steps(job: JobContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Take three steps; with `hang` hang after the second, with `fail` fail there, at first."""

    async def charge(total: int) -> Charge:
        await job.progress(10, "charging")
        return Charge(day=date(2026, 1, 1), note=None if total else "nothing to pay")

    def pack() -> dict[str, Any]:
        return {"null": None, "attempt": job.attempt}

    charged = await job.step("charge/1~a", charge, payload.get("total", 1))
    packed = await job.step("pack", pack)
    if job.attempt == 1 and payload.get("fail"):
        raise ValueError("not yet")
    if job.attempt == 1 and payload.get("hang"):
        await job.progress(50, "hanging")
        await asyncio.sleep(FOREVER)
    nothing = await job.step("nothing", {"a": 1}.get, "b")
    return {"day": charged.day.isoformat(), "packed": packed, "nothing": nothing}


@app.handler("steps-sync")
def steps_sync(job: JobContext, payload: int) -> int:
    """Take as many steps as the payload says, the first one twice if it is negative."""
    for number in range(payload):
        job.step(str(number), lambda: "x" * 30_000).result()
    return len([job.step("0", lambda: 1).result() for _ in range(-2 * payload)])


class Approval(BaseModel):
    """What `release` is told."""

    ok: bool
    note: str = "none"


@app.handler("release")
async def release(job: JobContext, payload: float | None = None) -> dict[str, Any]:
    """Wait for an approval, at most so many seconds; say who has given it."""
    timeout = None if payload is None else timedelta(seconds=payload)
    built = await job.step("build", lambda: "built")
    approval = await job.signal("approval", Approval, timeout=timeout)
    return {"built": built, "note": approval.note, "by": job.signal_sender("approval")}


@app.handler("release-sync")
def release_sync(job: JobContext, payload: float) -> str:
    """Wait for either of two approvals; `late` if the second has not come in time."""
    try:
        return job.signal("first", Approval).result().note
    except SignalInvalid:
        seconds = timedelta(seconds=payload)
    try:
        return job.signal("second", Approval, timeout=seconds).result().note
    except SignalTimeout:
        return "late"


@app.handler("hangs")
async def hangs(job: JobContext) -> str:
    """Hang in the first attempt."""
    await job.progress(1, "hanging")
    if job.attempt == 1:
        await asyncio.sleep(FOREVER)
    return "second time lucky"


@app.handler("tidies-up")
async def tidies_up(job: JobContext) -> None:
    """Note in a checkpoint that it was interrupted."""
    try:
        await job.progress(1, "hanging")
        await asyncio.sleep(FOREVER)
    except asyncio.CancelledError:
        await job.checkpoint("interrupted")
        raise


@app.handler("stubborn")
async def stubborn(job: JobContext) -> str:
    """Ignore being told to stop, for a while."""
    await job.progress(1, "hanging")
    for _ in range(100):
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue
    return "late"


@app.handler("exits")
async def exits(job: JobContext) -> None:
    raise SystemExit(3)


@app.handler("big")
async def big(job: JobContext, payload: int) -> str:
    return "x" * payload


@app.handler("big-checkpoint")
async def big_checkpoint(job: JobContext, payload: int) -> None:
    await job.checkpoint("x" * payload)


@app.handler("not-json")
async def not_json(job: JobContext) -> Any:
    return {"number": float("nan")}


class Ledger:
    """A resource."""

    def __init__(self) -> None:
        self.factor = 2


@app.resource
async def ledger() -> AsyncIterator[Ledger]:
    yield Ledger()


@app.handler("doubles")
def doubles(job: JobContext, payload: int, *, ledger: Ledger) -> int:
    if payload < 0:
        raise Fail("negative")
    return ledger.factor * payload


@app.handler("fans-out")
async def fans_out(job: JobContext, payload: list[int]) -> Any:
    children = [await job.submit("doubles", each, key=str(each)) for each in payload]
    seen = [await child.wait() for child in children]
    return [[view.phase, view.reason, view.result] for view in seen]


@app.handler("doubles-slowly")
async def doubles_slowly(job: JobContext, payload: int) -> int:
    await asyncio.sleep(4)
    if payload < 0:
        raise Fail("negative")
    return 2 * payload


@app.handler("gathers")
async def gathers(job: JobContext, payload: list[int]) -> Any:
    children = [await job.submit("doubles-slowly", each, key=str(each)) for each in payload]
    seen = await job.gather(*children)
    return [[view.phase, view.reason, view.result] for view in seen]


@app.handler("submits-badly")
async def submits_badly(job: JobContext, payload: str) -> None:
    await job.submit("doubles", 1, name=payload)


@app.item_handler("item", concurrency=2)
async def item(job: ItemContext, item: int) -> None:
    """Be done with an item."""


@app.item_handler("picky-item")
async def picky_item(job: ItemContext, item: Any) -> None:
    """Fail for `["fails"]`, and for `["shaky", n]` before the n-th try."""
    if item == ["fails"]:
        raise Fail(f"item {job.number} is wrong")
    if isinstance(item, list) and job.attempt < item[1]:
        raise ValueError(f"item {job.number} is not right yet")
