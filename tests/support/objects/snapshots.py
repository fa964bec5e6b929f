"""Builders of jobs, moments and snapshots for tests of the operator's core."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.policy import EffectivePolicy
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import ChangePhase, Decision
from asyncjob_operator.core.liveness import HolderStatus, PodView
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import OPEN_QUEUE, DecisionOptions, QueueView
from asyncjob_operator.core.policies.deduplication import dedup_rank
from asyncjob_operator.core.snapshot import Snapshot, observe

EPOCH = 1_800_000_000.0
"""Wall time at monotonic 0 in all tests, unless a clock is off."""

POD, POD_UID, WORKER = "worker-0", "pod-uid", "worker-0/a"
LEASE_SECONDS = 45


def at(seconds: float, *, skew: float = 0.0, draw: float = 0.5) -> Now:
    """Return the moment so many seconds in; `skew` puts the wall clock off."""
    return Now(seconds, EPOCH + seconds + skew, draw)


def stamp(seconds: float) -> str:
    """Return the stored time of that moment."""
    return format_timestamp(datetime.fromtimestamp(EPOCH + seconds, UTC))


CREATED = stamp(-365 * 86400)


def raw(name: str = "job", *, spec: dict[str, Any] | None = None, **status: Any) -> JsonObject:
    """Return an AsyncJob as the API server would."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "10",
            "creationTimestamp": CREATED,
        },
        "spec": {"type": "test", "queue": "default", **(spec or {})},
        "status": {"phase": "Queued", **status},
    }


def job(phase: Phase = Phase.QUEUED, name: str = "job", **changes: Any) -> JobView:
    """Return a job in a phase, with what the rules demand there; `spec` and status fields in."""
    spec = changes.pop("spec", {})
    status: dict[str, Any] = {"phase": phase.value, **changes}
    if phase is Phase.RUNNING:
        status = {**running(), **status}
    if phase is Phase.RETRYING:
        defaults = {"attempt": 1, "retries": 1, "retryDelaySeconds": 2.0}
        status = {**defaults, "nextAttemptTime": stamp(2), "claim": "claim-1", **status}
    if phase in FINISHED_PHASES:
        status = {"completionTime": stamp(0), **status}
    return read_job(raw(name, spec=spec, **status))


def running(duration: int = 60, renewals: int = 0) -> dict[str, Any]:
    """Return the status fields of a claimed job."""
    return {
        "attempt": 1,
        "claim": "claim-1",
        "startTime": stamp(0),
        "effective": EffectivePolicy(jitter=0.0, lease_duration_seconds=duration).to_json(),
        "lease": {
            "holder": POD,
            "holderUID": POD_UID,
            "worker": WORKER,
            "renewals": renewals,
            "durationSeconds": duration,
        },
    }


def pod(**changes: Any) -> PodView:
    """Return the worker's pod, alive and well unless changed."""
    healthy = PodView(
        "ns", POD, POD_UID, deleting=False, terminated=False, disrupted=False, termination=None
    )
    return replace(healthy, **changes)


def seen(
    view: JobView,
    *,
    first: float = 0.0,
    queue: QueueView = OPEN_QUEUE,
    holder: HolderStatus | None = None,
    others: tuple[JobView, ...] = (),
    options: DecisionOptions | None = None,
) -> Snapshot:
    """Return the snapshot of a job that this replica has known unchanged since `first`."""
    observation = observe(None, view, queue, at(first), just_changed=True)
    known = holder or HolderStatus(pods_known=True, pod=pod(), newest_worker=WORKER)
    return Snapshot(
        view, observation, options or DecisionOptions(), queue, known, competitor_among(others)
    )


def competitor_among(others: tuple[JobView, ...]) -> JobView | None:
    """Return the first of them that is live."""
    return min(filter(is_live, others), key=dedup_rank, default=None)


def roll_lease(
    pod: str = "w", renewed: int = 0, *, queue: str = "default", **said: Any
) -> JsonObject:
    """Return a worker's Lease; `types=None` leaves them out."""
    worker = said.pop("worker", pod)
    about = {key: value for key, value in {"types": ["a"], **said}.items() if value is not None}
    return {
        "metadata": {
            "namespace": "ns",
            "name": f"asyncjob-worker-{pod}",
            "labels": {"asyncjob.dev/queue": queue, COMPONENT_LABEL: WORKER_COMPONENT},
            "annotations": {"asyncjob.dev/worker": orjson.dumps(about).decode()},
        },
        "spec": {
            "holderIdentity": worker,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": str(renewed),
        },
    }


def judged(snapshot: Snapshot, moment: Now) -> Decision:
    """Return the decision."""
    return decide(snapshot, moment)


def moved(snapshot: Snapshot, moment: Now) -> tuple[str, str] | None:
    """Return phase and reason that the decision leads to, or None if it changes no phase."""
    effect = decide(snapshot, moment).effect
    if not isinstance(effect, ChangePhase):
        return None
    reason = effect.change.reason
    return effect.change.target.value, reason.value if reason else ""
