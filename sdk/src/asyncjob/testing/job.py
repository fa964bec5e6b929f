"""`FakeJob`: a job in the fake cluster, as a test inspects it and acts on it."""

from collections.abc import Mapping, Sequence

from asyncjob.app.context import Stop
from asyncjob.client.errors import JobStateError
from asyncjob.free_json import is_same_json, normalize
from asyncjob.json_types import Json, JsonObject, as_object, text
from asyncjob.lifecycle.job_view import too_late_to_redrive
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.signals import (
    MAX_SIGNAL_BYTES,
    signal_entry,
    signals_of,
)
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.models import AsyncJob, AsyncJobStatus
from asyncjob.models.job_status import HistoryEntry, JobError, Progress
from asyncjob.testing.manifests import read_job_manifest
from asyncjob.testing.simulator import Simulator
from asyncjob.testing.store import JobRecord


def send_signal(
    simulator: Simulator, record: JobRecord, name: str, payload: object, sent_by: str
) -> None:
    """Send a job a signal, or find it sent; raises InvalidError where the API server refuses it."""
    value = normalize(payload, what=f"signal {name!r}", max_bytes=MAX_SIGNAL_BYTES)
    known = as_object(signals_of(record.spec).get(name))
    if known and text(known, "sentBy") == sent_by and is_same_json(known.get("payload"), value):
        return
    sent = {**signals_of(record.spec), name: signal_entry(value, sent_by, simulator.now)}
    read_job_manifest({**record.obj, "spec": {**record.spec, "signals": sent}}, exists=True)
    simulator.change_spec(record, {"signals": sent})


class FakeJob:
    """One job. What it tells is always of now; what a user does to it, or a fault, is awaited."""

    def __init__(self, simulator: Simulator, record: JobRecord) -> None:
        self._simulator = simulator
        self.record = record

    def __repr__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"<FakeJob {self.name}: {self.phase}{why}>"

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
    def model(self) -> AsyncJob:
        """The object as a model."""
        return AsyncJob.model_validate(self.record.obj)

    @property
    def status(self) -> AsyncJobStatus:
        """Its status as a model."""
        return AsyncJobStatus.model_validate(self.record.status)

    @property
    def phase(self) -> Phase:
        """Where it is in its life."""
        return self.record.view.phase

    @property
    def phases(self) -> Sequence[Phase]:
        """All the phases it went through, from Queued to where it is."""
        return tuple(self.record.phases)

    @property
    def reason(self) -> Reason | None:
        """Why it is there."""
        return self.status.reason

    @property
    def message(self) -> str | None:
        """Why it is there, in words."""
        return self.status.message

    @property
    def attempt(self) -> int:
        """Claims so far."""
        return self.record.view.attempt

    @property
    def result(self) -> Json:
        """What the handler returned, as JSON."""
        return self.record.status.get("result")

    @property
    def error(self) -> JobError | None:
        """The last failure."""
        return self.status.error

    @property
    def progress(self) -> Progress | None:
        """How far the handler has come."""
        return self.status.progress

    @property
    def checkpoint(self) -> Json:
        """What the handler saved last."""
        return self.record.status.get("checkpoint")

    @property
    def steps(self) -> Mapping[str, Json]:
        """The results of the steps that are done, by key, oldest first."""
        return {
            key: as_object(record).get("result")
            for key, record in steps_of(self.record.status).items()
        }

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """Its changes of phase, oldest first."""
        return self.status.history or ()

    @property
    def children(self) -> "Sequence[FakeJob]":
        """The jobs that it has submitted, in the order of their creation."""
        return [FakeJob(self._simulator, one) for one in self._simulator.children_of(self.record)]

    # ---- what a user may do

    async def cancel(self) -> None:
        """Cancel it; a running handler is told to stop, a dead letter dismissed."""
        self._simulator.change_spec(self.record, {"cancel": True})

    async def suspend(self) -> None:
        """Hold it back from being claimed."""
        self._simulator.change_spec(self.record, {"suspend": True})

    async def resume(self) -> None:
        """Hold it back no longer."""
        self._simulator.change_spec(self.record, {"suspend": False})

    async def redrive(self) -> None:
        """Run a dead letter again with fresh budgets.

        Raises JobStateError for one whose deadline has passed, as a client does.
        """
        if self._simulator.is_past_deadline(self.record):
            view = self.record.view
            raise JobStateError(too_late_to_redrive(view.name, view.deadline or ""))
        self._simulator.change_spec(self.record, {"redrive": self.record.view.redrives + 1})

    async def signal(self, name: str, payload: object = None, *, sent_by: str = "somebody") -> None:
        """Send it a signal, once for each name; a handler that waits for it goes on.

        Repeating it changes nothing. Raises InvalidError for another of the same name, and for what
        else the API server refuses.
        """
        send_signal(self._simulator, self.record, name, payload, sent_by)

    async def rerun(self) -> "FakeJob":
        """Return a new job that does the same again."""
        number = self.record.view.reruns + 1
        self._simulator.change_spec(self.record, {"rerun": number})
        return FakeJob(self._simulator, self._simulator.create_rerun(self.record, number))

    # ---- fault injection

    async def crash(self) -> None:
        """Let its worker die in mid-run: what the handler does from now on no longer counts."""
        await self._simulator.crash(self.record)

    async def drain(self) -> None:
        """Let its worker shut down, its grace period over: the handler is asked to stop."""
        self._simulator.attempt_of(self.record).stop(Stop.DRAINING)
