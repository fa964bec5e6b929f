"""Handlers with steps, for a worker process: what their bodies do is written to a file."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

from asyncjob import Fail, JobContext, SignalTimeout, WorkerApp
from support.apps.worker import trace

app = WorkerApp()


async def body(job: JobContext, key: str, size: int) -> str:
    """Note that the step is taken, and return a text of this size."""
    trace(key, job)
    return "x" * size


def killing_body(job: JobContext, key: str, folder: str) -> str:
    """End the process, or that of the worker, by SIGKILL, once."""
    trace(key, job)
    mark = Path(folder) / f"killed-{job.name}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@app.handler("many")
async def many(job: JobContext, payload: dict[str, int]) -> int:
    """Take as many steps as the payload says."""
    texts = [
        await job.step(f"step-{number}", body, job, str(number), payload["size"])
        for number in range(payload["steps"])
    ]
    await asyncio.sleep(payload.get("pause", 0))
    return sum(map(len, texts))


async def order(job: JobContext, folder: Any) -> list[str]:
    """Take three steps; in the second the process is killed, once."""
    first = await job.step("first", body, job, "first", 1)
    second = await job.step("second", killing_body, job, "second", folder)
    return [first, second, await job.step("third", body, job, "third", 1)]


app.handler("killed")(order)
app.handler("killed-isolated", isolation="process")(order)


@app.handler("sleeping")
async def sleeping(job: JobContext, seconds: float) -> int:
    """Take two steps, sleep, take a third; return the number of the attempt."""
    await job.step("first", body, job, "first", 1)
    await job.step("second", body, job, "second", 1)
    await job.sleep("nap", seconds=seconds)
    await job.step("third", body, job, "third", 1)
    return job.attempt


@app.handler("tidy")
async def tidy(job: JobContext, seconds: float) -> None:
    """Work for so many seconds, and note how it has ended."""
    trace("begun", job)
    try:
        await asyncio.sleep(seconds)
    finally:
        trace("tidied", job)


@app.handler("fails")
async def fails(job: JobContext, _: Any) -> None:
    """Fail for good."""
    trace("failed", job)
    raise Fail("no luck")


@app.handler("stumbles")
async def stumbles(job: JobContext, _: Any) -> None:
    """Fail, and be tried again."""
    raise ConnectionError("no luck")


def noted(job: JobContext, key: str) -> None:
    """Note that the step is taken."""
    trace(key, job)


def nap(job: JobContext, seconds: float) -> int:
    """Sleep between two steps, in a thread or in a process of its own."""
    job.step("first", noted, job, "first").result()
    job.sleep("nap", seconds=seconds).result()
    job.step("second", noted, job, "second").result()
    return job.attempt


app.handler("sleeping-sync")(nap)
app.handler("sleeping-isolated", isolation="process")(nap)


@app.handler("told")
async def told(job: JobContext, seconds: float | None = None) -> Any:
    """Wait between two steps to be told to go, at most so many seconds."""
    await job.step("first", body, job, "first", 1)
    timeout = None if seconds is None else timedelta(seconds=seconds)
    try:
        payload = await job.signal("go", timeout=timeout)
    except SignalTimeout as late:
        return f"late: {late}"
    await job.step("second", body, job, "second", 1)
    return {"told": payload, "by": job.signal_sender("go"), "attempt": job.attempt}


def told_in_a_thread(job: JobContext, seconds: float | None = None) -> Any:
    """Wait likewise, in a thread or in a process of its own."""
    job.step("first", noted, job, "first").result()
    timeout = None if seconds is None else timedelta(seconds=seconds)
    try:
        payload = job.signal("go", timeout=timeout).result()
    except SignalTimeout as late:
        return f"late: {late}"
    job.step("second", noted, job, "second").result()
    return {"told": payload, "by": job.signal_sender("go"), "attempt": job.attempt}


@app.handler("approved-isolated", isolation="process")
def approved_in_a_process(job: JobContext) -> bool:
    """Wait for a yes or no, in a process of its own."""
    return job.signal("go", bool).result()


app.handler("told-sync")(told_in_a_thread)
app.handler("told-isolated", isolation="process")(told_in_a_thread)


@app.handler("leaf")
async def leaf(job: JobContext, seconds: float) -> float:
    """Be a child that takes so long; one that is below 0 fails."""
    trace("leaf", job)
    await asyncio.sleep(abs(seconds))
    if seconds < 0:
        raise Fail("no")
    return seconds


async def waits_for_children(job: JobContext, payload: list[float], queue: str | None) -> Any:
    """Wait between two steps for a child for each number, in this job's queue or another."""
    await job.step("first", body, job, "first", 1)
    children = [
        await job.submit("leaf", one, key=f"n{n}", queue=queue) for n, one in enumerate(payload)
    ]
    views = await job.gather(*children)
    await job.step("second", body, job, "second", 1)
    return [view.result if view.succeeded else view.reason for view in views]


@app.handler("family")
async def family(job: JobContext, payload: list[float]) -> Any:
    """Wait for children of the same queue."""
    return await waits_for_children(job, payload, None)


@app.handler("family-elsewhere")
async def family_elsewhere(job: JobContext, payload: list[float]) -> Any:
    """Wait for children of the queue `leaves`."""
    return await waits_for_children(job, payload, "leaves")


def family_in_a_thread(job: JobContext, payload: list[float]) -> Any:
    """Wait likewise, in a thread or in a process of its own."""
    job.step("first", noted, job, "first").result()
    children = [job.submit("leaf", one, key=f"n{n}").result() for n, one in enumerate(payload)]
    views = job.gather(*children).result()
    job.step("second", noted, job, "second").result()
    return [view.result if view.succeeded else view.reason for view in views]


app.handler("family-sync")(family_in_a_thread)
app.handler("family-isolated", isolation="process")(family_in_a_thread)


@app.handler("impatient")
async def impatient(job: JobContext, seconds: float) -> Any:
    """Wait for a slow child, for so many seconds."""
    child = await job.submit("leaf", 600, key="slow")
    try:
        return (await child.wait(seconds)).phase
    except TimeoutError as late:
        return str(late).replace(child.name, "<child>")
