"""The objects of the fake cluster: kept whole, version by version, and checked at each write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView, read_job
from asyncjob.names import API_VERSION, JOB_KIND
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.legality import check_transition
from asyncjob.testing.spec_laws import check_new_spec, check_spec_change

_COUNTERS = ("attempt", "retries", "crashes", "releases", "redrives", "reruns")
_CONFLICT = 409
_NOT_FOUND = 404


@dataclass(slots=True)
class JobRecord:
    """A job with all its versions.

    `phase_since` and `claimable_since` are times of the fake clock.
    """

    versions: list[JsonObject]
    phase_since: float
    claimable_since: float | None = None
    phases: list[Phase] = field(default_factory=lambda: [Phase.QUEUED])

    @property
    def obj(self) -> JsonObject:
        """The newest version."""
        return self.versions[-1]

    @property
    def status(self) -> JsonObject:
        """Its status."""
        return child(self.obj, "status")

    @property
    def spec(self) -> JsonObject:
        """Its spec."""
        return child(self.obj, "spec")

    @property
    def view(self) -> JobView:
        """The job as decisions see it."""
        return read_job(self.obj)


class JobStore:
    """The jobs of one namespace."""

    def __init__(self, clock: FakeClock, namespace: str) -> None:
        self._clock = clock
        self._namespace = namespace
        self._records: dict[str, JobRecord] = {}
        self._version = 0

    def __iter__(self) -> Iterator[JobRecord]:
        return iter(list(self._records.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def get(self, name: str) -> JobRecord:
        """Return a job; raises NotFoundError."""
        if name not in self._records:
            raise ObjectNotFoundError(f'asyncjobs "{name}" not found', status=_NOT_FOUND)
        return self._records[name]

    def create(
        self, metadata: JsonObject, spec: JsonObject, status: JsonObject | None = None
    ) -> JobRecord:
        """Store a new job; raises AlreadyExistsError, InvalidError or NotFakedError.

        `status` is that of a job which has a past already.
        """
        name = str(metadata["name"])
        if name in self._records:
            raise AlreadyExistsError(f'asyncjobs "{name}" already exists', status=_CONFLICT)
        check_new_spec(spec)
        fresh: dict[str, Json] = {"phase": Phase.QUEUED.value, **dict.fromkeys(_COUNTERS, 0)}
        obj: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {**metadata, **self._new_identity(), "namespace": self._namespace},
            "spec": spec,
            "status": {**fresh, **(status or {})},
        }
        record = JobRecord([obj], self._clock.elapsed)
        self._records[name] = record
        self._update_claimable_since(record)
        return record

    def change_spec(self, record: JobRecord, spec: JsonObject) -> None:
        """Store a user's change; raises InvalidError for one that the API server refuses."""
        if spec == record.spec:
            return
        check_spec_change(record.spec, spec, record.view.phase)
        self._write(record, {"spec": spec})

    def change_status(self, record: JobRecord, fields: Mapping[str, Json]) -> None:
        """Replace fields of the status whole; None removes one. Raises IllegalTransitionError."""
        merged = {**record.status, **fields}
        status = {name: value for name, value in merged.items() if value is not None}
        before = record.status
        check_transition(record.view.name, before, status)
        self._write(record, {"status": status})
        if before["phase"] != status["phase"]:
            record.phase_since = self._clock.elapsed
            record.phases.append(record.view.phase)
        self._update_claimable_since(record)

    def _write(self, record: JobRecord, parts: JsonObject) -> None:
        self._version += 1
        metadata = {**child(record.obj, "metadata"), "resourceVersion": str(self._version)}
        record.versions.append({**record.obj, **parts, "metadata": metadata})
        self._update_claimable_since(record)

    def _new_identity(self) -> JsonObject:
        self._version += 1
        return {
            "uid": f"00000000-0000-4000-8000-{self._version:012d}",
            "resourceVersion": str(self._version),
            "creationTimestamp": f"{self._clock.text[:19]}Z",
        }

    def _update_claimable_since(self, record: JobRecord) -> None:
        if not is_claimable(record.view):
            record.claimable_since = None
        elif record.claimable_since is None:
            record.claimable_since = self._clock.elapsed


def is_claimable(job: JobView) -> bool:
    """Return whether a worker may claim the job as it is."""
    return job.phase is Phase.QUEUED and (job.admitted or not job.gated)


def can_be_claimed(job: JobView) -> bool:
    """Return whether the API server lets a worker claim the job as it is."""
    return is_claimable(job) and not job.control.cancel and not job.control.suspend
