"""Handlers that tests drive from outside: by files that they wait for and a file that they fill."""

import asyncio
import ctypes
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from asyncjob import Fail, JobContext, Retry, WorkerApp
from support.programs.loop_watch import peak_mib

app = WorkerApp()
specialist = WorkerApp()
FOLDER = Path(os.environ.get("WORKER_APP_FOLDER", "."))
PATIENCE = 60.0
LOOK_SECONDS = 0.02


class Order(BaseModel):
    """A payload with a schema."""

    number: int


def trace(word: str, job: JobContext) -> None:
    """Append a line that the test counts; one write, so that processes do not mix theirs."""
    with (FOLDER / "trace").open("ab", buffering=0) as file:
        file.write(f"{word} {job.name} {job.attempt}\n".encode())


def is_open(gate: str) -> bool:
    """Return whether the test has opened a gate."""
    return (FOLDER / gate).exists()


@contextmanager
def traced(job: JobContext) -> Iterator[None]:
    """Note the beginning and the good end of a handler."""
    trace("begin", job)
    yield
    trace("end", job)


async def pass_gate(gate: str) -> None:
    """Wait until the test opens the gate."""
    give_up_at = time.monotonic() + PATIENCE
    while not is_open(gate) and time.monotonic() < give_up_at:  # noqa: ASYNC110  # a file
        await asyncio.sleep(LOOK_SECONDS)


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    """Return the payload."""
    with traced(job):
        return payload


@app.handler("order")
async def order(job: JobContext, payload: Order) -> int:
    """Take a payload with a schema."""
    return payload.number


@app.handler("request")
async def request(job: JobContext) -> Any:
    """Return what the submitter's request handed on."""
    return job.request


@app.handler("stepped")
async def stepped(job: JobContext, payload: float) -> None:
    """Take one step, which takes this many seconds."""
    await job.step("sleep", asyncio.sleep, payload)


@app.handler("wait")
async def wait(job: JobContext, gate: str) -> str:
    """Wait for a gate."""
    with traced(job):
        await pass_gate(gate)
        return "waited"


@app.handler("wait-sync")
def wait_sync(job: JobContext, gate: str) -> str:
    """Wait for a gate in a thread, and look whether to stop."""
    with traced(job):
        while not is_open(gate) and not job.cancelled:
            time.sleep(LOOK_SECONDS)
        return "waited"


@app.handler("steps")
async def steps(job: JobContext, payload: dict[str, Any]) -> list[int]:
    """Do steps with a checkpoint after each; at `hold` wait for a gate."""
    last = job.last_checkpoint
    start = last["row"] + 1 if isinstance(last, dict) else 0
    trace(f"from{start}", job)
    for row in range(start, payload["rows"]):
        if row == payload["hold"]:
            await pass_gate(payload["gate"])
        await job.checkpoint({"row": row})
        await job.progress(100 * row / payload["rows"], f"row {row}")
    return list(range(start, payload["rows"]))


@app.handler("checkpoints")
async def checkpoints(job: JobContext, payload: dict[str, Any]) -> Any:
    """Save checkpoints one after the other, each once the test allows; fail until the last."""
    if job.attempt > 1:
        return {"seen": job.last_checkpoint}
    for number, value in enumerate(payload["values"]):
        await job.checkpoint(value)
        await pass_gate(f"{payload['gate']}-{number}")
    raise Retry(after=0)


@app.handler("block")
async def block(job: JobContext, gate: str) -> str:
    """Block the event loop until the gate opens."""
    with traced(job):
        give_up_at = time.monotonic() + PATIENCE
        while not is_open(gate) and time.monotonic() < give_up_at:
            time.sleep(LOOK_SECONDS)  # noqa: ASYNC251  # the fault under test
        return "blocked"


@app.handler("stubborn")
async def stubborn(job: JobContext, gate: str) -> str:
    """Ignore being told to stop."""
    trace("begin", job)
    while not is_open(gate):
        try:
            await asyncio.sleep(LOOK_SECONDS)
        except asyncio.CancelledError:
            trace("ignored", job)
    return "late"


@app.handler("stubborn-sync")
def stubborn_sync(job: JobContext, gate: str) -> str:
    """Ignore being told to stop, in a thread."""
    trace("begin", job)
    while not is_open(gate):
        time.sleep(LOOK_SECONDS)
    return "late"


@app.handler("long-call")
async def long_call(job: JobContext) -> None:
    """Wait for a thread of the event loop's own that never ends."""
    trace("begin", job)
    await asyncio.to_thread(threading.Event().wait)


@app.handler("stamps-heeding")
def stamps_heeding(job: JobContext, seconds: float) -> str:
    """Write the time again and again, until it is told to stop."""
    over = time.monotonic() + seconds
    with (FOLDER / "trace").open("ab", buffering=0) as file:
        while not job.cancelled and time.monotonic() < over:
            file.write(f"at {job.name} {job.attempt} {time.monotonic()}\n".encode())
            time.sleep(0.01)
    return "done"


@app.handler("among-many")
async def among_many(job: JobContext, gate: str) -> Any:
    """Wait for two children among many; tell what the loop took at once, and the peak of RSS.

    In seconds of CPU, so that it does not matter what else the machine does.
    """
    children = [await job.submit("wait", gate, key=f"n{n}", queue="default") for n in range(2)]
    trace("waiting", job)
    waits, longest = asyncio.gather(*(child.wait() for child in children)), 0.0
    while not waits.done():
        before = time.thread_time()
        await asyncio.sleep(0.005)
        longest = max(longest, time.thread_time() - before)
    # Not ru_maxrss: that begins with what the process had that started this one.
    peak = peak_mib(os.getpid())
    return {"longest": longest, "peakMiB": peak, "phases": [view.phase for view in await waits]}


@app.handler("stamps-sync")
def stamps_sync(job: JobContext, gate: str) -> str:
    """Ignore being told to stop, and write the time again and again for as long as it runs."""
    with (FOLDER / "trace").open("ab", buffering=0) as file:
        while not is_open(gate):
            file.write(f"at {job.name} {job.attempt} {time.monotonic()}\n".encode())
            time.sleep(0.005)
    return "late"


@app.handler("stamps-thread")
async def stamps_thread(job: JobContext, gate: str) -> str:
    """Do so in a thread of the event loop's own, whose call is not over when this one is."""
    return await asyncio.to_thread(stamps_sync, job, gate)


@app.handler("big")
async def big(job: JobContext, size: int) -> str:
    """Return a result of about so many bytes."""
    return "x" * size


@app.handler("big-checkpoint")
async def big_checkpoint(job: JobContext, payload: dict[str, Any]) -> str:
    """Save a checkpoint of about so many bytes, and wait for it to be stored."""
    await job.checkpoint("x" * payload["size"])
    await pass_gate("never")
    return "unreachable"


@app.handler("fail")
async def fail(job: JobContext, message: str) -> None:
    """Give up."""
    raise Fail(message)


@app.handler("break")
async def break_(job: JobContext, message: str) -> None:
    """Fail in every attempt."""
    raise OSError(message)


@app.handler("kill")
async def kill(job: JobContext) -> None:
    """Take the process along."""
    trace("kill", job)
    os.kill(os.getpid(), 9)


@app.handler("linger")
async def linger(job: JobContext, seconds: float) -> None:
    """Take a while."""
    with traced(job):
        await asyncio.sleep(seconds)


@app.handler("shaky")
async def shaky(job: JobContext, seconds: float) -> None:
    """Take a moment, and fail one time in four."""
    await asyncio.sleep(seconds)
    if secrets.randbelow(4) == 0:
        raise Retry(after=0)


@app.handler("again")
async def again(job: JobContext) -> int:
    """Ask for a retry the first time."""
    if job.attempt == 1:
        raise Retry(after=0)
    return job.attempt


@app.handler("exit")
async def leave(job: JobContext) -> None:
    """Try to end the worker."""
    raise SystemExit(7)


@app.handler("die", isolation="process")
def die(job: JobContext) -> None:
    """Die in native code."""
    trace("die", job)
    ctypes.string_at(0)


@app.handler("resume", isolation="process")
async def resume(job: JobContext) -> Any:
    """Save where to resume, and leave without a word; then tell what was saved."""
    if job.attempt == 1:
        await job.checkpoint({"row": 1})
        os._exit(3)
    return job.last_checkpoint


@app.handler("hang", isolation="process")
def hang(job: JobContext) -> None:
    """Never end, whatever it is told."""
    trace(f"pid-{os.getpid()}", job)
    while True:
        time.sleep(LOOK_SECONDS)


@app.handler("power")
async def power(job: JobContext, exponent: int) -> Any:
    """Return a power of two."""
    return {"power": 2**exponent}


@app.handler("tiny")
async def tiny(job: JobContext) -> None:
    """Do next to nothing, but leave a line."""
    trace("tiny", job)


@specialist.handler("special")
async def special(job: JobContext) -> None:
    """Do what no other app can."""
