"""`python -m asyncjob_bench.parts.peer_process`: procrastinate's submitter, and its worker.

The submitter starts the worker, submits as fast as it is let, and reckons by the database's clock.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import time
from typing import Any, Final

import procrastinate
import uvloop

from asyncjob_bench.harness import procfs

CONNECTIONS: Final = 8
POLL_SECONDS: Final = 0.2
TASK: Final = "bench_nothing"
WARM_UP: Final = "warm-up"
JOBS: Final = "jobs"
RATE: Final = """
    SELECT EXTRACT(EPOCH FROM MAX(at) FILTER (WHERE type = 'succeeded')
                            - MIN(at) FILTER (WHERE type = 'deferred')) AS seconds
    FROM procrastinate_events JOIN procrastinate_jobs AS job ON job_id = job.id
    WHERE job.queue_name = %(queue)s
"""
LEFT: Final = """
    SELECT COUNT(*) AS left FROM procrastinate_jobs
    WHERE queue_name = %(queue)s AND status <> 'succeeded'
"""


def opened(socket: str, connections: int) -> procrastinate.App:
    """Return the app on the database behind a socket."""
    connector = procrastinate.PsycopgConnector(
        kwargs={"host": socket, "user": "bench", "dbname": "postgres"},
        min_size=connections,
        max_size=connections,
    )
    app = procrastinate.App(connector=connector)

    @app.task(name=TASK, queue=JOBS)
    async def nothing(**_: object) -> dict[str, bool]:
        return {"ok": True}

    return app


async def submit(order: dict[str, Any]) -> dict[str, Any]:
    """Send a warm-up and then so many jobs through a worker's process.

    Returns jobs per second, and the CPU seconds of client, worker and server meanwhile.
    """
    app = opened(order["socket"], CONNECTIONS)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = _start_worker(order)
        try:
            await _through(app, order["warm_up"], WARM_UP)
            programs = {"workers": [worker.pid], "PostgreSQL": [order["server"]]}
            # The worker is a child of ours: what it has used counts as ours, too.
            before, own = procfs.usage(programs), time.process_time()
            await _through(app, order["count"], JOBS)
            used, own = procfs.usage(programs) - before, time.process_time() - own
            took = await app.connector.execute_query_one_async(RATE, queue=JOBS)
        finally:
            worker.terminate()
            worker.wait()
    return {
        "rate": order["count"] / float(took["seconds"]),
        "cpu": {**used.programs, "client": own},
        "busy": used.busy,
        "available": used.available,
    }


async def _through(app: procrastinate.App, count: int, queue: str) -> None:
    numbers = itertools.count()

    async def one_after_another() -> None:
        while (number := next(numbers)) < count:
            await app.configure_task(TASK, queue=queue).defer_async(number=number, text="x" * 70)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(one_after_another())
    while (  # noqa: ASYNC110  # only the database knows
        await app.connector.execute_query_one_async(LEFT, queue=queue)
    )["left"]:
        await asyncio.sleep(POLL_SECONDS)


async def work(order: dict[str, Any]) -> None:
    """Run jobs until SIGTERM."""
    app = opened(order["socket"], order["slots"])
    async with app.open_async():
        await app.run_worker_async(queues=[WARM_UP, JOBS], concurrency=order["slots"])


def _start_worker(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    module = "asyncjob_bench.parts.peer_process"
    worker = subprocess.Popen([sys.executable, "-m", module, "work"], stdin=subprocess.PIPE)
    assert worker.stdin
    with worker.stdin as orders:
        orders.write(json.dumps(order).encode())
    return worker


def main() -> None:
    """Be one or the other."""
    order = json.load(sys.stdin)
    if sys.argv[1] == "work":
        uvloop.run(work(order))
    else:
        json.dump(uvloop.run(submit(order)), sys.stdout)


if __name__ == "__main__":
    main()
