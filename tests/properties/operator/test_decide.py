"""What holds of the operator's core for whatever job, clock and order of events."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.json_types import Json
from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import DependencyView, JobView, read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import Actor, find_transition
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import (
    Admit,
    CascadeCancel,
    ChangePhase,
    CreateRerun,
    UpdateWaitReason,
)
from asyncjob_operator.core.dependencies import (
    NO_DEPENDENCIES,
    Dependencies,
    DependencyState,
    RelatedJob,
)
from asyncjob_operator.core.heap import TimerHeap
from asyncjob_operator.core.liveness import ContainerTermination, HolderStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions, QueueView
from asyncjob_operator.core.snapshot import Observation, Snapshot, observe
from support.objects.snapshots import EPOCH, WORKER, at, job, pod, raw, running, stamp

times = st.integers(-200, 200).map(stamp)
counts = st.integers(0, 100)
specs = st.fixed_dictionaries(
    {},
    optional={
        "notBefore": times,
        "notAfter": times,
        "deadlineSeconds": st.integers(1, 100)
        | st.integers(365 * 86_400 - 200, 365 * 86_400 + 200),
        "cancel": st.just(True),
        "suspend": st.just(True),
        "redrive": counts,
        "rerun": counts,
        "queueTimeoutSeconds": counts,
        "cancelGraceSeconds": counts,
        "deduplicationId": st.just("one"),
        "dependsOn": st.just([{"name": "other"}]),
    },
)


@st.composite
def jobs(draw: st.DrawFn, name: str = "job") -> JobView:
    phase = draw(st.sampled_from(Phase))
    counters = {key: draw(st.integers(0, 120)) for key in ("retries", "crashes", "releases")}
    status: dict[str, Any] = {**counters, "reason": draw(st.sampled_from(["", "Suspended"]))}
    if phase is Phase.QUEUED and draw(st.booleans()):
        status["admitted"] = True
    if phase is not Phase.RUNNING:
        status["attempt"] = draw(st.integers(0, 3))
    return job(phase, name, spec=draw(specs), **status)


@st.composite
def holders(draw: st.DrawFn) -> HolderStatus:
    when, code = EPOCH + draw(st.integers(-50, 50)), draw(st.sampled_from([0, 1, 137]))
    ending = ContainerTermination(when, code, "", restarted=draw(st.booleans()))
    fate = {key: draw(st.booleans()) for key in ("deleting", "terminated", "disrupted")}
    known = pod(termination=draw(st.sampled_from([None, ending])), **fate)
    return HolderStatus(
        pods_known=draw(st.booleans()),
        pod=draw(st.sampled_from([None, known, pod()])),
        newest_worker=draw(st.sampled_from(["", WORKER, "another"])),
        newest_worker_since=draw(st.floats(0, 100)),
        termination_shown_at=draw(st.none() | st.floats(0, 100)),
    )


@st.composite
def ties(draw: st.DrawFn) -> Dependencies:
    """Return what may tie a job that depends on one other to it, and to a parent."""
    anyone = st.builds(
        RelatedJob,
        *(st.just(text) for text in ("ns", "other", "uid-other")),
        phase=st.sampled_from(Phase),
        cascades_cancel=st.booleans(),
    )
    one = DependencyView("other", any_outcome=draw(st.booleans()), children=draw(st.booleans()))
    need = DependencyState(
        one, draw(st.none() | anyone), draw(st.booleans()), draw(st.none() | anyone)
    )
    cycle = (draw(anyone),) if draw(st.integers(0, 5)) == 0 else ()
    return Dependencies((need,), draw(st.none() | anyone), cycle)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    view = draw(jobs())
    queue = QueueView(paused=draw(st.booleans()))
    competitor = (
        draw(st.none() | jobs("other").filter(is_live)) if view.gates.deduplication_id else None
    )
    first = draw(st.floats(0, 100))
    seen = observe(None, view, queue, at(first), just_changed=draw(st.booleans()))
    tied = draw(ties()) if view.gates.depends_on and not view.attempt else NO_DEPENDENCIES
    return Snapshot(
        view, seen, DecisionOptions(), queue, draw(holders()), competitor, dependencies=tied
    )


@given(snapshots(), st.floats(100, 10_000), st.floats(0, 0.999))
def test_every_decided_transition_is_one_of_the_operators_with_one_of_its_reasons(
    snapshot: Snapshot, moment: float, draw: float
) -> None:
    effect = decide(snapshot, at(moment, draw=draw)).effect
    if isinstance(effect, ChangePhase):
        transition = find_transition(snapshot.job.phase, effect.change.target)
        assert transition is not None
        assert effect.change.reason in transition.reasons_by_actor[Actor.OPERATOR]
        assert effect.change.reason in transition.reasons


@given(snapshots(), st.floats(100, 10_000))
def test_without_an_effect_the_next_look_lies_ahead(snapshot: Snapshot, moment: float) -> None:
    decision = decide(snapshot, at(moment))
    if decision.effect is None and decision.requeue_at is not None:
        assert decision.requeue_at > moment


@given(snapshots(), st.floats(100, 10_000))
def test_decisions_settle_after_a_few_steps(snapshot: Snapshot, moment: float) -> None:
    now = at(moment)
    steps = 0
    while (effect := decide(snapshot, now).effect) is not None:
        snapshot = _after(snapshot, effect, now)
        steps += 1
        assert steps <= 6, snapshot.job
        if snapshot.job.phase is Phase.RETRYING:
            break


def _after(snapshot: Snapshot, effect: object, now: Now) -> Snapshot:
    """Return the snapshot after the effect has been carried out."""
    view = snapshot.job
    match effect:
        case ChangePhase(change=move):
            view = _moved(view, move.fields)
        case Admit():
            view = replace(view, admitted=True)
        case UpdateWaitReason(reason=reason, message=message):
            view = replace(view, reason=reason.value, pending_message=message)
        case CascadeCancel():
            view = replace(view, control=replace(view.control, cancel=True, cancel_cascade=True))
        case CreateRerun(number=number):
            view = replace(view, reruns=number)
        case _:
            view = replace(view, redrives=view.control.redrive)
    seen = observe(snapshot.observation, view, snapshot.queue, now, just_changed=True)
    return replace(snapshot, job=view, observation=seen)


def _moved(view: JobView, fields: Any) -> JobView:
    names = {"phase": "phase", "reason": "reason", "admitted": "admitted", "redrives": "redrives"}
    names |= {"retries": "retries", "crashes": "crashes", "releases": "releases"}
    names |= {"lastTransitionTime": "last_transition_time"}
    changes = {names[key]: value for key, value in fields.items() if key in names}
    changes["phase"] = Phase(changes["phase"])
    changes["admitted"] = bool(changes.get("admitted"))
    changes["reason"] = changes["reason"] or ""
    if view.phase is Phase.RUNNING:
        changes["lease"] = None
    return replace(view, **changes)


@given(
    st.lists(st.tuples(st.floats(0, 30), st.floats(-1e6, 1e6)), min_size=1, max_size=20),
    st.integers(5, 600),
)
def test_no_wall_clock_ends_a_lease_early(beats: list[tuple[float, float]], duration: int) -> None:
    """However the wall clock jumps, a lease ends its duration after the last renewal was seen."""
    observation: Observation | None = None
    options, now, view = DecisionOptions(lease_margin=0), 0.0, job()
    for renewals, (pause, skew) in enumerate(beats):
        now += pause
        view = job(Phase.RUNNING, **running(duration, renewals))
        observation = observe(
            observation, view, QueueView(), at(now, skew=skew), just_changed=False
        )
        holder = HolderStatus(pods_known=True, pod=pod(), newest_worker=WORKER)
        snapshot = Snapshot(view, observation, options, holder=holder)
        just_before = decide(snapshot, at(now + duration - 0.001, skew=-skew))
        assert just_before.effect is None
        assert decide(snapshot, at(now + duration, skew=-skew)).effect is not None


@given(st.floats(0, 1e4), st.floats(-1e7, 1e7), st.floats(0, 1e4), st.booleans())
def test_a_backoff_is_never_longer_than_its_delay(
    delay: float, skew: float, first: float, just_changed: bool
) -> None:
    view = job(Phase.RETRYING, retryDelaySeconds=delay, nextAttemptTime=stamp(first + delay))
    retry_at = observe(
        None, view, QueueView(), at(first, skew=skew), just_changed=just_changed
    ).retry_at
    assert retry_at is not None
    assert first <= retry_at <= first + delay


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.one_of(st.none(), st.integers(0, 50)))))
def test_the_heap_is_a_map_from_keys_to_their_last_deadlines(
    changes: list[tuple[str, int | None]],
) -> None:
    heap, model = TimerHeap(), dict[str, int]()
    for key, deadline in changes:
        heap.set(key, deadline)
        if deadline is None:
            model.pop(key, None)
        else:
            model[key] = deadline
    assert len(heap) == len(model)
    assert heap.next_time() == min(model.values(), default=None)
    due = heap.pop_due(25, limit=100)
    assert sorted(due) == sorted(key for key, deadline in model.items() if deadline <= 25)
    assert [model[key] for key in due] == sorted(model[key] for key in due)


json: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
)


@given(st.fixed_dictionaries({"payload": json}))
def test_reading_a_job_does_not_depend_on_its_payload(spec: dict[str, Any]) -> None:
    assert read_job(raw(spec=spec)) == read_job(raw(spec={}))
