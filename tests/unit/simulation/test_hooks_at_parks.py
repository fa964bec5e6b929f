"""Apps with hooks whose jobs park: the worker goes on, and the hooks are told of each park."""

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app import Event, JobEnded
from asyncjob.app.errors import SignalTimeout
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import over, played, until

PARKS: Final = {
    "sleep": ("Scheduled", "Sleeping"),
    "signal": ("Pending", "WaitingForSignal"),
    "children": ("Pending", "WaitingForChildren"),
}


class HookCalls:
    """A handler that waits for what its payload says, and what the hook of the app was told."""

    def __init__(self) -> None:
        self.parked = list[tuple[str, str]]()
        self.ended = list[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        @app.handler("waiter")
        async def waiter(job: JobContext, payload: str) -> int:
            if payload == "sleep":
                await job.sleep("nap", minutes=5)
            elif payload == "signal":
                with pytest.raises(SignalTimeout):
                    await job.signal("go", timeout=timedelta(minutes=5))
            else:
                await job.gather(await job.submit("child", key="a"))
            return job.attempt

        @app.handler("child")
        async def child(job: JobContext, _: Any) -> None:
            await asyncio.sleep(30)

        @app.on(Event.PARKED, Event.SUCCEEDED)
        async def hook(event: JobEnded) -> None:
            if event.job.name != "job":
                return
            self.ended.append(event.event.value)
            if event.event is Event.PARKED:
                assert event.reason is not None
                self.parked.append((event.phase.value, event.reason.value))

        return app


@pytest.mark.parametrize("wait", PARKS)
def test_a_hook_is_told_of_a_park_and_the_worker_goes_on(wait: str) -> None:
    told = HookCalls()

    async def story(cluster: QuietCluster) -> Object:
        process = cluster.worker.process
        cluster.submit("job", "waiter", payload=wait)
        status = await until(cluster, over, within=1000, step=10)
        assert cluster.worker.process is process, "the worker has been started again"
        return status

    end = played(told.app, story)
    assert (end["phase"], end.get("parks", 0), end.get("crashes", 0), end.get("releases", 0)) == (
        "Succeeded",
        1,
        0,
        0,
    )
    assert told.ended == ["parked", "succeeded"]
    assert told.parked == [PARKS[wait]]
