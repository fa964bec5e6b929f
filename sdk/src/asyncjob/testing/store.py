"""The objects of the fake cluster.

Jobs, version by version, and queues, checked at each write as the API server checks them.

Changes of status are checked against the transition table, changes of spec against the validation
rules. The rules are CEL, which nothing here evaluates: each that matters is written out once more,
and the contract tests hold the two together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.free_json import is_same_json
from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    number,
    opt_integer,
    text,
)
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.lifecycle.signals import has_timed_out, is_signal_name, signals_of
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.lifecycle.transitions import StatusCounter, Transition, find_transition
from asyncjob.lifecycle.waits import waits_of, without_dropped
from asyncjob.names import API_VERSION, JOB_KIND
from asyncjob.rules import job_spec
from asyncjob.rules.rule import Rule
from asyncjob.rules.signal_policy import SIGNAL_NAME
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.dependencies import broken_dependency_rules, depends_on_itself
from asyncjob.testing.errors import IllegalTransitionError, NotFakedError
from asyncjob.testing.manifests import invalid_error, read_queue_manifest

NO_STATUS: Final[JsonObject] = {}
_REDRIVE: Final = (Phase.DEAD_LETTER, Phase.QUEUED)
_BUDGET_COUNTERS: Final = tuple(one for one in StatusCounter if one is not StatusCounter.ATTEMPT)


def check_transition(name: str, before: JsonObject, after: JsonObject) -> None:
    """Raise IllegalTransitionError unless a job may go from the one status to the other."""
    source, target = Phase(text(before, "phase")), Phase(text(after, "phase"))
    _check_steps(name, before, after, runs_on=source is target is Phase.RUNNING)
    if source is target:
        _check_same_phase(name, before, after)
        return
    transition = find_transition(source, target)
    if transition is None:
        raise IllegalTransitionError(f"{name}: no transition leads from {source} to {target}")
    reason = text(after, "reason")
    if reason not in (transition.reasons or {""}):
        raise IllegalTransitionError(
            f"{name}: reason {reason!r} does not lead from {source} to {target}"
        )
    _check_counters(name, transition, before, after)


def _check_steps(name: str, before: JsonObject, after: JsonObject, *, runs_on: bool) -> None:
    """Raise IllegalTransitionError unless steps are only added, and only while the job runs."""
    known, found = steps_of(before), steps_of(after)
    changed = {key for key in known if key not in found or found[key] != known[key]}
    if changed or (len(found) > len(known) and not runs_on):
        keys = ", ".join(sorted(changed or found.keys() - known.keys()))
        raise IllegalTransitionError(
            f"{name}: steps are only added, while the job runs; a step that is done is never "
            f"changed or removed: {keys}"
        )


def _check_same_phase(name: str, before: JsonObject, after: JsonObject) -> None:
    for counter in StatusCounter:
        if integer(before, counter) != integer(after, counter):
            raise IllegalTransitionError(f"{name}: {counter} changed without a change of phase")


def _check_counters(
    name: str, transition: Transition, before: JsonObject, after: JsonObject
) -> None:
    if (transition.source, transition.target) == _REDRIVE:
        if any(integer(after, budget) for budget in _BUDGET_COUNTERS):
            raise IllegalTransitionError(f"{name}: a redrive resets the budgets")
        return
    for counter in StatusCounter:
        grown = integer(after, counter) - integer(before, counter)
        if grown not in ({0, 1} if counter in transition.incremented else {0}):
            raise IllegalTransitionError(
                f"{name}: {counter} grew by {grown} from {transition.source} to {transition.target}"
            )


_IMMUTABLE_FIELDS: Final = dict(
    zip(job_spec.IMMUTABLE_FIELDS, job_spec.SPEC_FIXED_RULES, strict=True)
)

_UNSUPPORTED_SPEC_FIELDS: Final[Mapping[str, str]] = {
    "deduplicationId": "test it on a real API server",
    "payloadFrom": "give the payload itself",
}


def check_new_spec(name: str, spec: JsonObject) -> None:
    """Raise InvalidError for a spec that no job is created with, NotFakedError for one too hard."""
    _raise_first(_broken_shape_rules(spec))
    if depends_on_itself(spec, name, "name"):
        raise invalid_error(
            f"spec.dependsOn: {name} cannot depend on itself; leave it out "
            f"({job_spec.SPEC_DEPENDS_ON_OTHERS.id})"
        )
    if integer(spec, "redrive") or integer(spec, "rerun"):
        _raise_first([job_spec.CONTROL_NOT_AT_CREATION])
    if "signals" in spec:
        _raise_first([job_spec.SIGNAL_NOT_AT_CREATION])
    for field_name, way_out in _UNSUPPORTED_SPEC_FIELDS.items():
        if spec.get(field_name):
            raise NotFakedError(f"the fake cluster does not implement spec.{field_name}: {way_out}")


def check_spec_change(
    before: JsonObject, after: JsonObject, phase: Phase, status: JsonObject = NO_STATUS
) -> None:
    """Raise InvalidError for a change of spec that the API server refuses."""
    _raise_first(_broken_shape_rules(after))
    _raise_first(
        rule for name, rule in _IMMUTABLE_FIELDS.items() if before.get(name) != after.get(name)
    )
    _raise_first(_broken_control_rules(before, after, phase))
    _raise_first(_broken_signal_rules(signals_of(before), signals_of(after), phase, status))


def _broken_signal_rules(
    before: JsonObject, after: JsonObject, phase: Phase, status: JsonObject
) -> Iterator[Rule]:
    added = after.keys() - before.keys()
    if not all(map(is_signal_name, after)):
        yield SIGNAL_NAME
    if not all(is_same_json(after.get(name), signal) for name, signal in before.items()):
        yield job_spec.SIGNAL_ONCE
    if added and phase in FINISHED_PHASES:
        yield job_spec.SIGNAL_UNFINISHED
    if any(has_timed_out(status, name) for name in added):
        yield job_spec.SIGNAL_IN_TIME


def _broken_shape_rules(spec: JsonObject) -> Iterator[Rule]:
    start, end = text(spec, "notBefore"), text(spec, "notAfter")
    if start and end and parse_timestamp(end) <= parse_timestamp(start):
        yield job_spec.SHAPE_DEADLINE
    yield from broken_dependency_rules(spec, job_spec.SHAPE_DEPENDENCIES)
    if "payloadFrom" in spec and len(as_object(spec["payloadFrom"])) != 1:
        yield job_spec.SHAPE_ONE_SOURCE
    retry = as_object(spec.get("retryPolicy"))
    both = "maxDelaySeconds" in retry and "initialDelaySeconds" in retry
    if both and number(retry, "maxDelaySeconds") < number(retry, "initialDelaySeconds"):
        yield job_spec.SHAPE_DELAYS


def _broken_control_rules(before: JsonObject, after: JsonObject, phase: Phase) -> Iterator[Rule]:
    if flag(before, "cancel") and not flag(after, "cancel"):
        yield job_spec.CONTROL_CANCEL_LATCHES
    if flag(after, "cancel") and not flag(before, "cancel") and phase is Phase.SUCCEEDED:
        yield job_spec.CONTROL_CANCEL_TOO_LATE
    redrives = integer(after, "redrive") - integer(before, "redrive")
    if redrives < 0:
        yield job_spec.CONTROL_REDRIVE_GROWS
    if redrives > 0 and phase is not Phase.DEAD_LETTER:
        yield job_spec.CONTROL_REDRIVE_DEAD_LETTER
    if integer(after, "rerun") < integer(before, "rerun"):
        yield job_spec.CONTROL_RERUN_GROWS
    if _differs(before, after, "priority") and phase is Phase.RUNNING:
        yield job_spec.CONTROL_PRIORITY


def _differs(before: JsonObject, after: JsonObject, name: str) -> bool:
    was: Json = before.get(name)
    return was != after.get(name)


def _raise_first(broken: Iterator[Rule] | list[Rule]) -> None:
    for rule in broken:
        raise invalid_error(rule.message_text)


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


class FakeJobStore:
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
            raise _not_found(name)
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
        check_new_spec(name, spec)
        fresh: dict[str, Json] = {"phase": Phase.QUEUED.value, "attempt": 0}
        obj: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {**metadata, **self.new_identity(), "namespace": self._namespace},
            "spec": spec,
            "status": {**fresh, **(status or {})},
        }
        record = JobRecord([obj], self._clock.elapsed)
        self._records[name] = record
        self._update_claimable_since(record)
        return record

    def change_spec(self, record: JobRecord, spec: JsonObject) -> None:
        """Store a user's change; raises InvalidError for one that the API server refuses.

        Raises ObjectNotFoundError for a job that has been deleted, as chunks of arrays are.
        """
        self.get(record.view.name)
        if is_same_json(spec, record.spec):
            return
        check_spec_change(record.spec, spec, record.view.phase, record.status)
        self._write(record, {"spec": spec})

    def change_status(self, record: JobRecord, fields: Mapping[str, Json]) -> None:
        """Replace fields of the status whole; None removes one. Raises IllegalTransitionError."""
        merged = {**record.status, **fields}
        status = {name: value for name, value in merged.items() if value is not None}
        if waits := waits_of(status):
            status["waits"] = without_dropped(waits)
        before = record.status
        check_transition(record.view.name, before, status)
        self._write(record, {"status": status})
        if before["phase"] != status["phase"]:
            record.phase_since = self._clock.elapsed
            record.phases.append(record.view.phase)
        self._update_claimable_since(record)

    def delete(self, record: JobRecord) -> None:
        """Delete a job; who still has its record can do nothing with it any more."""
        del self._records[self.get(record.view.name).view.name]

    def _write(self, record: JobRecord, parts: JsonObject) -> None:
        metadata = {**child(record.obj, "metadata"), "resourceVersion": self.next_version()}
        record.versions.append({**record.obj, **parts, "metadata": metadata})
        self._update_claimable_since(record)

    def next_version(self) -> str:
        """Return the version of the next write of any object."""
        self._version += 1
        return str(self._version)

    def new_identity(self) -> JsonObject:
        """Return what makes a new object of any kind another one than all before."""
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


def _not_found(name: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f'asyncjobs "{name}" not found', status=_NOT_FOUND)


def is_claimable(job: JobView) -> bool:
    """Return whether a worker may claim the job as it is."""
    return job.phase is Phase.QUEUED and (job.admitted or not job.gated)


def can_be_claimed(job: JobView) -> bool:
    """Return whether the API server lets a worker claim the job as it is."""
    return is_claimable(job) and not job.control.cancel and not job.control.suspend


_SUPPORTED_QUEUE_FIELDS: Final = {"defaults": None, "paused": False, "unknownType": "Wait"}


class QueueStore:
    """AsyncQueues by name; a queue without one is open and unlimited."""

    def __init__(self) -> None:
        self._specs: dict[str, JsonObject] = {}

    def apply(self, manifest: JsonObject) -> None:
        """Take an AsyncQueue; raises InvalidError, or NotFakedError for what has no effect here."""
        spec = read_queue_manifest(manifest)
        for name, value in spec.items():
            if name not in _SUPPORTED_QUEUE_FIELDS or not _is_supported_value(name, value):
                raise NotFakedError(
                    f"the fake cluster does not implement {name} of an AsyncQueue, only defaults: "
                    "test it on a real API server"
                )
        self._specs[text(child(manifest, "metadata"), "name")] = spec

    def policy_layer(self, queue: str) -> PolicyLayer:
        """Return what the queue says about the policy of its jobs."""
        return read_policy_layer(self._defaults(queue))

    def queue_timeout(self, queue: str) -> int | None:
        """Return how long its jobs may wait, in seconds."""
        return opt_integer(self._defaults(queue), "queueTimeoutSeconds")

    def cancel_grace(self, queue: str) -> int | None:
        """Return how long its handlers may take to stop, in seconds."""
        return opt_integer(self._defaults(queue), "cancelGraceSeconds")

    def _defaults(self, queue: str) -> JsonObject:
        return child(self._specs.get(queue, {}), "defaults")


def _is_supported_value(field: str, value: Json) -> bool:
    return _SUPPORTED_QUEUE_FIELDS[field] is None or value == _SUPPORTED_QUEUE_FIELDS[field]
