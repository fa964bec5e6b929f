"""A worker whose heartbeat thread hangs restarts, unless somebody has asked it to end before."""

import asyncio

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob_simulation.cluster import Container
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.processes import HEARTBEAT
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from asyncjob_worker.cli import WorkerExitCode
from support.driven.waiting_jobs import played, until

HUNG_SECONDS = 60.0


def app(_: HandlerCalls) -> WorkerApp:
    made = WorkerApp()

    @made.handler("long")
    async def long(_: JobContext) -> None:
        await asyncio.sleep(3600)

    return made


@pytest.mark.parametrize(
    ("is_asked_to_end", "code"),
    [
        pytest.param(False, WorkerExitCode.RESTART, id="by itself"),
        pytest.param(True, WorkerExitCode.STOPPED, id="asked to end"),
    ],
)
def test_a_worker_whose_heartbeat_thread_hangs_restarts_unless_it_is_to_end(
    is_asked_to_end: bool, code: int
) -> None:
    async def story(cluster: QuietCluster) -> Object:
        ended = asyncio.get_running_loop().create_future()

        def on_end(container: Container, code: int) -> None:
            if container.process.name.startswith("worker") and not ended.done():
                ended.set_result(code)

        cluster.cluster.on_end = on_end
        cluster.submit("job", "long")
        await until(cluster, lambda status: status["phase"] == "Running", name="job")
        process = cluster.worker.process
        assert process is not None
        if is_asked_to_end:
            cluster.cluster.evict(cluster.worker, HUNG_SECONDS)
        process.block(HUNG_SECONDS, HEARTBEAT)
        return {"code": await asyncio.wait_for(ended, HUNG_SECONDS)}

    assert played(app, story) == {"code": code}
