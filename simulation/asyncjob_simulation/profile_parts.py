"""What the profiles of a simulation add to it: workload, handlers, and what is judged."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from asyncjob import WorkerApp
from asyncjob.names import ARRAYS
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.array_rules import ArrayRules
from asyncjob_simulation.array_workload import ArrayWorkload
from asyncjob_simulation.child_handlers import ChildRecord, add_child_handlers
from asyncjob_simulation.child_rules import ChildRules
from asyncjob_simulation.child_workload import ChildWorkload
from asyncjob_simulation.dice import FaultChooser
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.item_runs import ItemRuns, add_item_handlers
from asyncjob_simulation.item_store import MemoryStore, StoreRequests, offload_to
from asyncjob_simulation.profiles import Profile
from asyncjob_simulation.result_rules import ResultRules
from asyncjob_simulation.step_handlers import StepRecord, add_step_handlers
from asyncjob_simulation.story import Recorder
from asyncjob_simulation.swarm import Swarm
from asyncjob_simulation.time_limits import TimedWorkload, TimeRules
from asyncjob_simulation.wait_rules import WaitRules
from asyncjob_simulation.wait_workload import STRANGER, WaitWorkload, user
from asyncjob_simulation.workload import Workload
from asyncjob_worker.execution import object_store
from asyncjob_worker.settings import OffloadSettings

_STORE_RECOVERS: Final = (0.0, 200.0)
"""How many seconds after the end of all other faults those of the store end."""


@dataclass
class ProfileParts:
    """What all simulations have."""

    server: ApiServer
    calls: HandlerCalls
    recorder: Recorder
    broken: Callable[[str, str, str], None]
    chooser: FaultChooser
    swarm: Swarm

    def workload(self, *args: Any, **more: Any) -> Workload:
        """Return what people do."""
        return Workload(*args, **more)

    def add_handlers(self, app: WorkerApp) -> None:
        """Have a worker's app run further types of jobs."""

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""

    def look(self) -> None:
        """Judge what else has been stored since the last time."""

    def unfinished(self) -> list[str]:
        """Return what has not ended, besides jobs."""
        return []

    @property
    def watched(self) -> Sequence[str]:
        """What is watched, and so may be late, besides what all simulations have."""
        return ()

    @property
    def offload(self) -> OffloadSettings:
        """Settings of the store that workers have."""
        return OffloadSettings()

    def stand_ins(self) -> Sequence[AbstractContextManager[object]]:
        """Return what stands in for parts of the product while it runs."""
        return ()

    def recover(self) -> None:
        """Have nothing go wrong any more."""

    def check_calm(self) -> None:
        """Judge what has to be over by now: there have been no faults for a long time."""


@dataclass
class JobParts(ProfileParts):
    """Plain jobs, some of which hang."""

    def __post_init__(self) -> None:
        self._times = TimeRules(self.calls.loop, self.recorder.count, self.broken)

    def workload(self, *args: Any, **more: Any) -> Workload:
        """Return what people do."""
        return TimedWorkload(*args, **more)

    def on_job(self, change: Change) -> None:
        """Learn of a change of a job."""
        self._times.on_job(change)

    def look(self) -> None:
        """Judge how long attempts have taken."""
        self._times.look()

    def recover(self) -> None:
        """Have nothing go wrong any more."""
        self._times.recover()


@dataclass
class WaitParts(ProfileParts):
    """Steps, sleeps and signals."""

    def __post_init__(self) -> None:
        self._stepping = StepRecord(self.calls, self.server, self.recorder.count)
        self._rules = WaitRules(self._stepping, self.broken, strangers=(user(STRANGER),))

    def workload(self, *args: Any, **more: Any) -> Workload:
        """Return what people do."""
        return WaitWorkload(*args, **more, record=self._stepping)

    def add_handlers(self, app: WorkerApp) -> None:
        """Have a worker's app run jobs that take steps and wait."""
        add_step_handlers(app, self._stepping)

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        self._rules.on_job(change)

    def check_calm(self) -> None:
        """Judge that nobody waits for what is over."""
        self._rules.check_woken()


@dataclass
class ArrayParts(ProfileParts):
    """Arrays, and their items."""

    def __post_init__(self) -> None:
        self._runs = ItemRuns(self.calls, self.recorder.count)
        self._rules = ArrayRules(self.server, self._runs, self.recorder.count, self.broken)
        self._runs.is_counted = self._rules.is_counted
        self._runs.is_skipped = self._rules.is_skipped
        self._store = MemoryStore()
        self._results = ResultRules(self._store, self.recorder.count, self.broken)
        self._rules.on_counted = self._results.on_counted
        loop, is_gentle = self.calls.loop, self.swarm.is_gentle
        self._requests = StoreRequests(loop, self.chooser, self.recorder, is_gentle=is_gentle)

    def workload(self, *args: Any, **more: Any) -> Workload:
        """Return what people do."""
        return ArrayWorkload(*args, **more, runs=self._runs)

    def add_handlers(self, app: WorkerApp) -> None:
        """Have a worker's app run items."""
        add_item_handlers(app, self._runs)

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        self._rules.on_job(change)
        self._results.on_job(change)

    def look(self) -> None:
        """Judge what has been stored of arrays since the last time."""
        self._rules.look()

    def unfinished(self) -> list[str]:
        """Return the arrays that have not ended, and the chunks of those that have."""
        return [*self._rules.unfinished(), *self._rules.left()]

    @property
    def watched(self) -> Sequence[str]:
        """What is watched besides: arrays."""
        return (ARRAYS,)

    @property
    def offload(self) -> OffloadSettings:
        """Settings of the store that results of items go to."""
        return offload_to(self._store)

    def stand_ins(self) -> Sequence[AbstractContextManager[object]]:
        """Return what stands in for the threads that make requests to a store."""
        return (patch.object(object_store, "BoundedThreads", lambda _: self._requests),)

    def recover(self) -> None:
        """Have the store answer, after a while: most chunks run once processes are left alone."""
        after = self.chooser.dice.between("store recovers", *_STORE_RECOVERS)
        self.calls.loop.call_later(after, self._requests.recover, context=Context())

    def check_calm(self) -> None:
        """Judge that arrays have ended, and left nothing behind."""
        self._rules.check_calm()


@dataclass
class ChildParts(ProfileParts):
    """Children that are waited for, and deadlines."""

    def __post_init__(self) -> None:
        self._awaiting = ChildRecord(self.calls, self.server, self.recorder.count)
        stepping = StepRecord(self.calls, self.server, self.recorder.count)
        self._waits = WaitRules(stepping, self.broken)
        loop, count = self.calls.loop, self.recorder.count
        self._children = ChildRules(self.server, loop, count, self.broken)

    def workload(self, *args: Any, **more: Any) -> Workload:
        """Return what people do."""
        return ChildWorkload(*args, **more)

    def add_handlers(self, app: WorkerApp) -> None:
        """Have a worker's app run jobs that wait for children."""
        add_child_handlers(app, self._awaiting)

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        self._waits.on_job(change)
        self._children.on_job(change)

    def check_calm(self) -> None:
        """Judge that nobody waits for what is over, or goes on for too long."""
        self._waits.check_woken()
        self._children.check_calm()


PARTS: Final[Mapping[Profile, type[ProfileParts]]] = {
    Profile.JOBS: JobParts,
    Profile.WAITS: WaitParts,
    Profile.ARRAYS: ArrayParts,
    Profile.CHILDREN: ChildParts,
}
