"""Events posted to a fake API server, with the clock in the test's hands."""

import asyncio
from typing import cast

from asyncjob.kube import KubeSession
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import at
from support.parts.vitals import loop_health, quarantine


class EventRecorderHarness:
    """Records Events, and posts those that are due."""

    def __init__(self) -> None:
        self.session, self.metrics, self.now = FakeSession(), OperatorMetrics(), 0.0
        session = cast("KubeSession", self.session)
        self.recorder = EventRecorder(session, "me", self.moment, self.metrics, quarantine())

    def moment(self) -> Now:
        return at(self.now)

    async def post(self) -> None:
        posting = asyncio.create_task(self.recorder.run(loop_health()))
        for _ in range(200):
            self.now += 0.0001
            await asyncio.sleep(0)
        posting.cancel()

    @property
    def posted(self) -> int:
        return len(self.session.objects)
