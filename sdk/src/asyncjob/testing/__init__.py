"""Tests of handlers and of whole apps without a cluster: a fake clock, everything captured.

`run_handler` runs one attempt of one handler; `FakeCluster` runs jobs through their whole lives.
"""

from asyncjob.app.stop import Stop
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.cluster import FakeCluster
from asyncjob.testing.errors import (
    IllegalTransitionError,
    NotFakedError,
    StuckError,
    TestKitError,
)
from asyncjob.testing.handler_run import HandlerRun, Outcome
from asyncjob.testing.job import FakeJob
from asyncjob.testing.run_handler import HandlerCall, run_handler, run_handler_sync

__all__ = [
    "FakeClock",
    "FakeCluster",
    "FakeJob",
    "HandlerCall",
    "HandlerRun",
    "IllegalTransitionError",
    "NotFakedError",
    "Outcome",
    "Phase",
    "Reason",
    "Stop",
    "StuckError",
    "TestKitError",
    "run_handler",
    "run_handler_sync",
]
