"""Tests of handlers and of whole apps without a cluster: a fake clock, everything captured.

`run_handler` runs one attempt of one handler; `FakeCluster` runs jobs through their whole lives.
"""

from asyncjob.extras import needs

with needs("handlers"):
    from asyncjob.app.context import Stop
    from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
    from asyncjob.lifecycle.phases import Phase, Reason
    from asyncjob.testing.array import FakeArray
    from asyncjob.testing.clock import FakeClock
    from asyncjob.testing.cluster import FakeCluster
    from asyncjob.testing.errors import (
        IllegalTransitionError,
        NotFakedError,
        StuckError,
        TestKitError,
    )
    from asyncjob.testing.handler_run import (
        HandlerCall,
        HandlerRun,
        Outcome,
        run_handler,
        run_handler_sync,
    )
    from asyncjob.testing.job import FakeJob

__all__ = [
    "ArrayPhase",
    "ArrayReason",
    "FakeArray",
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
