"""An app whose handlers do what takes rights."""

from typing import Any

from asyncjob import ItemContext, JobContext, WorkerApp

app = WorkerApp()


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    """Return the payload, wherever it came from."""
    return payload


@app.handler("parent")
async def parent(job: JobContext) -> str:
    """Submit a child and wait for it."""
    child = await job.submit("echo", 1)
    return (await child.wait()).name


@app.handler("mapper")
async def mapper(job: JobContext) -> str:
    """Submit an array, which nobody runs, and look at it."""
    array = await job.map("number", 1)
    try:
        await array.wait(timeout=0.3)
    except TimeoutError:
        return array.name
    raise AssertionError(array.name)


@app.handler("sleeper")
async def sleeper(job: JobContext) -> None:
    """Sleep for longer than a slot is held."""
    await job.sleep("nap", hours=1)


@app.item_handler("number")
async def number(job: ItemContext, item: int) -> None:
    """Count."""
