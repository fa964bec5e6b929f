"""Measures what handler processes cost: `python -m asyncjob_worker.isolation.cost MODULE:APP`.

That is the time to start one and its resident memory. With `--type` and `--payload` also the time
of one job, by running that handler many times in the same process.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path

import click
import orjson

from asyncjob.app import Handler, JobContext, JobInfo
from asyncjob.json_types import Json
from asyncjob_worker.app_loader import load_app
from asyncjob_worker.isolation.pool import HandlerProcess, ProcessPool
from asyncjob_worker.isolation.process_execution import ProcessExecution
from asyncjob_worker.isolation.protocol import ProcessConfig

_JOBS = 200


class _NoReports:
    def progress(self, percent: int, message: str | None) -> None:
        """Do nothing."""

    def checkpoint(self, value: Json) -> None:
        """Do nothing."""


@click.command()
@click.argument("app")
@click.option("--starts", default=5, show_default=True, help="Processes to start, one by one.")
@click.option("--type", "type_", help="Handler to run.")
@click.option("--payload", default="null", help="Its payload, as JSON.")
def main(app: str, starts: int, type_: str | None, payload: str) -> None:
    """Measure what a process for handlers of APP costs."""
    handlers = load_app(app).handlers
    config = ProcessConfig(app, list(sys.path))
    asyncio.run(_measure_starts(config, starts))
    if type_:
        asyncio.run(_measure_jobs(config, handlers[type_], orjson.loads(payload)))


async def _measure_starts(config: ProcessConfig, count: int) -> None:
    seconds, resident = [], 0.0
    for _ in range(count):
        started = time.perf_counter()
        process = await HandlerProcess.start(config)
        seconds.append(time.perf_counter() - started)
        resident = _resident(process.pid)
        await process.end(grace_seconds=5.0)
    click.echo(f"start   {statistics.median(seconds):.2f} s, median of {count}")
    click.echo(f"memory  {resident / 1024:.0f} MiB resident")


async def _measure_jobs(config: ProcessConfig, handler: Handler, payload: Json) -> None:
    pool, seconds = ProcessPool(config, max_size=1), []
    info = JobInfo("ns", "measured", "uid", handler.type, "default", attempt=1)
    for _ in range(_JOBS):
        context = JobContext(info, _NoReports(), remaining=lambda: 60.0)
        started = time.perf_counter()
        await ProcessExecution(pool, handler, context, payload).run()
        seconds.append(time.perf_counter() - started)
    await pool.close()
    click.echo(f"job     {statistics.median(seconds) * 1000:.2f} ms, median of {_JOBS}")


def _resident(pid: int) -> float:
    """Return the resident memory of a process in KiB; 0 where the system has no /proc."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
    return float(lines["VmRSS"].split()[0])


if __name__ == "__main__":
    main()
