"""Handlers with processes of their own, which die, hang and swell on order."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel, field_validator

from asyncjob import Fail, JobContext, Retry, WorkerApp

app = WorkerApp()
log = structlog.get_logger()

MIB = 1024 * 1024
AGES = 60.0


class Own(Exception):  # noqa: N818
    """An error whose class the worker never sees."""


app.categorize(Own, "Mine")


class Order(BaseModel):
    """A payload with a schema, and a validator that can do anything."""

    number: int
    due: date | None = None

    @field_validator("number")
    @classmethod
    def look(cls, value: int) -> int:
        """Die of a number that a validator of native code might die of."""
        if value == -1:
            os._exit(9)
        return value


class Receipt(BaseModel):
    """A result that has to be made JSON by its own type."""

    due: date


@app.handler("echo", isolation="process")
async def echo(job: JobContext, payload: Any = "nothing") -> Any:
    """Return the payload."""
    return payload


@app.handler("order", isolation="process")
def order(job: JobContext, payload: Order) -> Receipt:
    """Take and return typed values, in a thread."""
    return Receipt(due=payload.due or date(2026, 1, payload.number))


@app.handler("look", isolation="process")
async def look(job: JobContext) -> Any:
    """Return what the handler sees of its job, and of the process it is in."""
    links = _links()
    return {
        "name": job.name,
        "token": job.fencing_token,
        "checkpoint": job.last_checkpoint,
        "request": job.request,
        "seconds": job.seconds_left,
        "cancelled": job.cancelled,
        "pid": os.getpid(),
        "group": os.getpgrp(),
        "stdin": links.get("0"),
        "fds": {fd: link for fd, link in links.items() if int(fd) > 2},
        "handed-on": [fd for fd in links if int(fd) > 2 and os.get_inheritable(int(fd))],
        "modules": sorted({name.partition(".")[0] for name in sys.modules}),
        "kube": "asyncjob.kube" in sys.modules,
    }


def _links() -> dict[str, str]:
    """Return what each open file descriptor is."""
    links = {}
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder itself was one
            links[fd.name] = str(fd.readlink())
    return links


@app.handler("segfault", isolation="process")
def segfault(job: JobContext) -> None:
    """Die in native code."""
    ctypes.string_at(0)


@app.handler("exit-now", isolation="process")
async def exit_now(job: JobContext, code: int) -> None:
    """Leave without a word, after a last checkpoint."""
    await job.checkpoint({"before": code})
    os._exit(code)


@app.handler("kill-itself", isolation="process")
async def kill_itself(job: JobContext, number: int) -> None:
    """Die of a signal."""
    os.kill(os.getpid(), number)
    await asyncio.sleep(AGES)


@app.handler("sys-exit", isolation="process")
async def sys_exit(job: JobContext) -> None:
    """Try to end the process politely."""
    sys.exit(7)


@app.handler("raise", isolation="process")
async def raise_(job: JobContext, what: str) -> None:
    """Raise what is named."""
    match what:
        case "own":
            raise Own("mine")
        case "retry":
            raise Retry("not yet", after=7)
        case "fail":
            raise Fail("never", category="NotFound")
        case "nan":
            await job.checkpoint(float("nan"))
        case "cancelled":
            raise asyncio.CancelledError
        case "long":
            raise ValueError("x" * 100_000)
        case _:
            raise KeyError(what)


@app.handler("swell", isolation="process", memory_mib=300)
def swell(job: JobContext, mib: int) -> int:
    """Hold so much memory."""
    return len(b"x" * (mib * MIB)) // MIB


@app.handler("cramped", isolation="process", memory_mib=1)
async def cramped(job: JobContext) -> None:
    """Have a limit below what the app itself takes."""


_leak: list[bytes] = []


@app.handler("leak", isolation="process")
async def leak(job: JobContext, mib: int) -> int:
    """Keep so much memory beyond the job's end."""
    _leak.append(b"x" * (mib * MIB))
    return os.getpid()


@app.handler("pid", isolation="process", memory_mib=300)
async def pid(job: JobContext) -> int:
    """Tell in which process it runs."""
    return os.getpid()


@app.handler("spin", isolation="process")
async def spin(job: JobContext, folder: str) -> None:
    """Block the event loop for ever, whatever it is told."""
    _note_start(folder)
    while True:
        time.sleep(0.01)  # noqa: ASYNC251  # the fault under test


@app.handler("deaf", isolation="process")
def deaf(job: JobContext, folder: str) -> None:
    """Block every thread of the process in native code that holds the interpreter's lock."""
    _note_start(folder)
    ctypes.PyDLL(None).sleep(int(AGES))


@app.handler("obey", isolation="process")
async def obey(job: JobContext, folder: str) -> None:
    """Wait, and leave a note when told to stop."""
    _note_start(folder)
    try:
        await asyncio.sleep(AGES)
    finally:
        (Path(folder) / "obeyed").write_text(str(job.cancelled))


@app.handler("obey-sync", isolation="process")
def obey_sync(job: JobContext, folder: str) -> None:
    """Look whether to stop, and leave a note."""
    _note_start(folder)
    while not job.cancelled:
        time.sleep(0.01)
    (Path(folder) / "obeyed").write_text("True")


@app.handler("obey-blocking", isolation="process")
async def obey_blocking(job: JobContext, folder: str) -> None:
    """Look whether to stop without ever yielding to the event loop, and leave a note."""
    _note_start(folder)
    while not job.cancelled:
        time.sleep(0.01)  # noqa: ASYNC251  # the fault under test
    (Path(folder) / "obeyed").write_text("True")


@app.handler("family", isolation="process")
async def family(job: JobContext, folder: str) -> None:
    """Start a program that outlives its parent, then block."""
    child = subprocess.Popen(["sleep", str(int(AGES))])  # noqa: ASYNC220
    (Path(folder) / "grandchild").write_text(str(child.pid))
    _note_start(folder)
    time.sleep(AGES)  # noqa: ASYNC251  # the fault under test


def _note_start(folder: str) -> None:
    pending = Path(folder) / "pending"
    pending.write_text(str(os.getpid()))
    pending.rename(Path(folder) / "started")


@app.handler("flood", isolation="process")
def flood(job: JobContext, count: int) -> int:
    """Report without a pause, but for what lets other threads run; then return."""
    for number in range(count):
        time.sleep(0)
        job.progress(number % 100, f"row {number}")
        job.checkpoint({"row": number})
    return count


@app.handler("big", isolation="process")
async def big(job: JobContext, size: int) -> str:
    """Return a result of about so many bytes."""
    return "x" * size


@app.handler("not-json", isolation="process")
async def not_json(job: JobContext) -> Any:
    """Return what is no JSON."""
    return object()


@app.handler("terminate-child", isolation="process")
def terminate_child(job: JobContext) -> int:
    """Start a program and end it by SIGTERM; return its exit code."""
    child = subprocess.Popen(["sleep", str(int(AGES))])
    child.send_signal(signal.SIGTERM)
    return child.wait(AGES)


@app.handler("signal-itself", isolation="process")
async def signal_itself(job: JobContext) -> str:
    """Get the signals that are meant for the worker."""
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
    await asyncio.sleep(0.05)
    return "alive"


@app.handler("close-all", isolation="process")
async def close_all(job: JobContext) -> None:
    """Close every file descriptor, as a daemon would, and go on."""
    os.closerange(3, 100)
    await asyncio.sleep(AGES)


@app.handler("garbage", isolation="process")
async def garbage(job: JobContext, payload: str = "{]") -> None:
    """Write a frame of the payload's text, nonsense, into every socket of the process."""
    frame = len(payload).to_bytes(4, "big") + payload.encode()
    for fd, link in _links().items():
        if link.startswith("socket:"):
            with suppress(OSError):
                os.write(int(fd), frame)
    await asyncio.sleep(AGES)


@app.handler("speak", isolation="process")
async def speak(job: JobContext) -> None:
    """Print and log."""
    print("printed by the handler", flush=True)  # noqa: T201
    log.info("logged by the handler")


class Charge(BaseModel):
    """What a step gives."""

    total: int


async def charge(total: int) -> Charge:
    """Charge, in the handler's process."""
    return Charge(total=total)


def size(length: int) -> str:
    """Return a text of this length."""
    return "x" * length


@app.handler("steps", isolation="process")
async def steps(job: JobContext, total: int) -> list[Any]:
    """Take two steps."""
    charged = await job.step("charge", charge, total)
    return [charged.total, await job.step("pid", os.getpid), sorted(job.steps_done)]


@app.handler("steps-sync", isolation="process")
def steps_sync(job: JobContext, length: int) -> list[Any]:
    """Take two steps; the first has a result of this length."""
    text = job.step("text", size, length).result()
    return [len(text), job.step("pid", os.getpid).result(), sorted(job.steps_done)]


@app.handler("first-of", isolation="process")
async def first_of(job: JobContext, then: bool) -> list[str]:
    """Wait for a day or a signal, whichever comes first; then for another signal, if asked to."""
    day = asyncio.ensure_future(job.sleep("day", days=1))
    told = asyncio.ensure_future(job.signal("go"))
    done, pending = await asyncio.wait({day, told}, return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    for one in pending:
        one.cancel()
    if then:
        await job.signal("then")
    return [name for name, one in (("day", day), ("told", told)) if one in done]


@app.handler("steps-misused", isolation="process")
async def steps_misused(job: JobContext, how: str) -> str:
    """Wait where no wait is one, or undo a step whose kept result does not fit."""
    if how == "body":

        async def body() -> None:
            await job.sleep("nap", days=1)

        await job.step("all", body)
    elif how == "dropped":
        job.signal("approval", bool)
    else:
        try:
            await job.step("charge", charge, 1)
        except Exception:  # noqa: BLE001  # what the test is about
            await job.step("refund", size, 1)
    return "went on"


@app.handler("steps-stopped", isolation="process")
def steps_stopped(job: JobContext, folder: str) -> None:
    """Take a step once the handler is to stop; nothing of it is to be undone."""
    job.step("before", size, 1).result()
    _note_start(folder)
    while not job.cancelled:
        time.sleep(0.01)
    try:
        job.step("after", size, 1).result()
    except Exception:
        (Path(folder) / "undone").touch()
        raise
