"""`FakeArray`: an array in the fake cluster, as a test inspects it and acts on it."""

from collections.abc import Sequence

from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.models.array import AsyncArray, AsyncArrayStatus, ItemFailure
from asyncjob.testing.arrays.array_store import ArrayRecord
from asyncjob.testing.job import FakeJob
from asyncjob.testing.simulator import Simulator


class FakeArray:
    """One array. What it tells is always of now; what a user does to it is awaited."""

    def __init__(self, simulator: Simulator, record: ArrayRecord) -> None:
        self._simulator = simulator
        self.record = record

    def __repr__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        counts = f"{self.succeeded} of {self.total} items done, {self.failed} failed"
        return f"<FakeArray {self.name}: {self.phase}{why}, {counts}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.view.name

    @property
    def uid(self) -> str:
        """Its UID."""
        return self.record.view.uid

    @property
    def manifest(self) -> JsonObject:
        """The whole object, as `kubectl get -o yaml` would show it."""
        return self.record.obj

    @property
    def versions(self) -> Sequence[JsonObject]:
        """The object after each write, oldest first."""
        return tuple(self.record.versions)

    @property
    def model(self) -> AsyncArray:
        """The object as a model."""
        return AsyncArray.model_validate(self.record.obj)

    @property
    def status(self) -> AsyncArrayStatus:
        """Its status as a model."""
        return AsyncArrayStatus.model_validate(child(self.record.obj, "status"))

    @property
    def phase(self) -> ArrayPhase:
        """Where it is in its life."""
        return self.record.view.state.phase

    @property
    def reason(self) -> ArrayReason | None:
        """Why it is there."""
        return self.record.view.state.reason

    @property
    def message(self) -> str | None:
        """Why it is there, in words."""
        return self.record.view.state.message or None

    @property
    def total(self) -> int:
        """Number of items."""
        return self.record.view.total

    @property
    def succeeded(self) -> int:
        """Number of items that are done."""
        return self.record.view.state.succeeded

    @property
    def failed(self) -> int:
        """Number of items that have failed."""
        return self.record.view.state.failed

    @property
    def failed_items(self) -> Sequence[int]:
        """Numbers of the items that have failed, in their order."""
        return list(self.record.view.state.failed_items)

    @property
    def errors(self) -> Sequence[ItemFailure]:
        """The newest errors of items, at most 20."""
        return self.status.errors or ()

    @property
    def results(self) -> Sequence[ItemResult]:
        """What the items that are done have returned, in their order; needs `spec.results`."""
        return self._simulator.results_of(self.record)

    @property
    def chunks(self) -> Sequence[FakeJob]:
        """The jobs that run its items and are not counted yet, in the order of their creation."""
        return [FakeJob(self._simulator, one) for one in self._simulator.chunks_of(self.record)]

    # ---- what a user may do

    async def cancel(self) -> None:
        """Cancel it and its chunks; what is done stays counted."""
        self._simulator.change_array(self.record, {"cancel": True})

    async def suspend(self) -> None:
        """Have no chunk created or claimed; those that run go on."""
        self._simulator.change_array(self.record, {"suspend": True})

    async def resume(self) -> None:
        """Let it go on."""
        self._simulator.change_array(self.record, {"suspend": False})

    async def redrive(self) -> None:
        """Run the failed items of a failed array again."""
        number = self.record.view.state.redrives + 1
        self._simulator.change_array(self.record, {"redrive": number})
