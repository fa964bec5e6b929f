"""What is known of the jobs that a job depends on, as one value."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.job_view import DependencyView
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob_operator.core.decision import (
    CancelCascades,
    CascadeCancel,
    ChangePhase,
    DependencyMissing,
    Wait,
)
from asyncjob_operator.core.dependencies import (
    Dependencies,
    DependencyState,
    RelatedJob,
    find_cycle,
    related_job,
)
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.core.policies.cancellation import cancel_source, cascade_cancel
from asyncjob_operator.core.policies.dead_letters import (
    DependencyFailure,
    Missing,
    dependency_failure,
    fail_on_dependency,
)
from support.objects.snapshots import at, job, moved, seen


def related(name: str, phase: Phase = Phase.SUCCEEDED, reason: str = "") -> RelatedJob:
    return RelatedJob("ns", name, f"uid-{name}", phase, reason)


def on(
    name: str,
    other: RelatedJob | None = None,
    *,
    any_outcome: bool = False,
    children: bool = False,
    open_children: bool = False,
    failed_child: RelatedJob | None = None,
) -> DependencyState:
    entry = DependencyView(name, any_outcome=any_outcome, children=children)
    return DependencyState(entry, other, open_children, failed_child)


@pytest.mark.parametrize("phase", Phase)
def test_a_dependency_is_met_by_success_or_by_any_end_where_that_is_enough(phase: Phase) -> None:
    ended = phase in FINISHED_PHASES
    assert on("a", related("a", phase)).met is (phase is Phase.SUCCEEDED)
    assert on("a", related("a", phase), any_outcome=True).met is ended
    assert related("a", phase).finished is ended
    assert related("a", phase).failed is (ended and phase is not Phase.SUCCEEDED)


def test_nothing_is_met_by_a_job_that_does_not_exist_or_has_open_children() -> None:
    assert not on("a").met
    assert not on("a", any_outcome=True).met
    assert not on("a", related("a"), children=True, open_children=True).met


def test_a_failed_job_or_child_makes_a_dependency_impossible_unless_any_outcome_will_do() -> None:
    dead, child = related("a", Phase.DEAD_LETTER), related("c", Phase.CANCELLED)
    assert on("a", dead, failed_child=child).failed_job == dead
    assert on("a", related("a"), failed_child=child).failed_job == child
    assert on("a", related("a", Phase.RUNNING)).failed_job is None
    assert on("a", failed_child=child).failed_job is None
    assert on("a", dead, any_outcome=True, failed_child=child).failed_job is None


def test_the_cancel_of_a_job_or_child_cascades_unless_any_outcome_will_do() -> None:
    job_ = replace(related("a", Phase.CANCELLED), cascades_cancel=True)
    child = replace(related("c", Phase.CANCELLED), cascades_cancel=True)
    assert on("a", job_, failed_child=child).cascading_job == job_
    assert on("a", related("a"), failed_child=child).cascading_job == child
    assert on("a", related("a"), failed_child=related("c")).cascading_job is None
    assert on("a", job_, any_outcome=True).cascading_job is None


def test_what_is_missing_and_unmet_is_told_with_the_missing_first() -> None:
    waits, done = on("a", related("a", Phase.RUNNING)), on("b", related("b"))
    missing, with_children = on("c"), on("d", related("d"), children=True)
    known = Dependencies((waits, done, missing, with_children))
    assert known.missing == (missing.dependency,)
    assert known.unmet == (missing, waits)
    assert known.with_children == (with_children,)
    assert known.failed_job is None
    dead = related("e", Phase.DEAD_LETTER)
    assert Dependencies((waits, on("e", dead))).failed_job == dead


def test_it_is_told_how_a_job_has_failed_and_why_if_that_is_known() -> None:
    assert related("a", Phase.DEAD_LETTER).outcome == "a is a dead letter"
    assert related("a", Phase.CANCELLED, "Duplicate").outcome == "a was cancelled (Duplicate)"


def test_what_matters_of_a_job_is_who_it_is_and_how_it_is() -> None:
    view = job(Phase.CANCELLED, "a", reason="CancelRequested", spec={"cancel": True})
    assert related_job(view) == related("a", Phase.CANCELLED, "CancelRequested")
    both = {"cancel": True, "cancelCascade": True}
    assert related_job(job(Phase.CANCELLED, "a", spec=both)).cascades_cancel


RING = {"a": "b", "b": "c", "c": "a", "d": "a"}


def test_a_search_for_a_cycle_follows_so_many_dependencies_and_no_more() -> None:
    assert find_cycle("a", RING.__getitem__, limit=3) == ("a", "b", "c")
    assert find_cycle("a", RING.__getitem__, limit=2) == ()
    assert find_cycle("d", RING.__getitem__) == ()
    assert find_cycle("a", {"a": "a"}.__getitem__) == ("a",)


CASCADES = replace(related("a", Phase.CANCELLED), cascades_cancel=True)


@pytest.mark.parametrize(
    ("known", "admitted", "source"),
    [
        (Dependencies(parent=CASCADES), False, CASCADES),
        (Dependencies(parent=CASCADES), True, CASCADES),
        (Dependencies(parent=related("a", Phase.CANCELLED)), False, None),
        (Dependencies((on("b", related("b")), on("a", CASCADES))), False, CASCADES),
        (Dependencies((on("a", CASCADES),)), True, None),
        (Dependencies((on("a", CASCADES, any_outcome=True),)), False, None),
        (Dependencies(), False, None),
    ],
)
def test_a_job_is_cancelled_with_its_parent_and_until_it_is_admitted_with_a_dependency(
    known: Dependencies, admitted: bool, source: RelatedJob | None
) -> None:
    snapshot = replace(seen(job(admitted=admitted)), dependencies=known)
    assert cancel_source(snapshot) == source
    effect = cascade_cancel(snapshot, at(1))
    assert effect == (CascadeCancel("cascade", CancelCascades(source)) if source else None)
    asked = replace(snapshot, job=job(admitted=admitted, spec={"cancel": True}))
    assert cascade_cancel(asked, at(1)) is None


def test_a_job_that_does_not_exist_is_waited_for_as_long_as_the_option_says() -> None:
    snapshot = seen(job(), options=DecisionOptions(missing_dependency_timeout=60))
    observation = replace(snapshot.observation, missing_dependency_since=100.0)
    states = (on("there", related("there", Phase.RUNNING)), on("gone"))
    snapshot = replace(snapshot, observation=observation, dependencies=Dependencies(states))
    assert fail_on_dependency(snapshot, at(159)) == Wait(160.0)
    effect = fail_on_dependency(snapshot, at(160))
    assert isinstance(effect, ChangePhase)
    assert (effect.policy, effect.precondition) == ("dependency", DependencyMissing("ns", "gone"))
    assert (effect.change.target, effect.change.reason) == ("DeadLetter", "DependencyFailed")
    assert effect.change.fields["message"] == (
        "cannot start: gone does not exist; waited 60 s for jobs that do not exist"
    )
    for_ever = replace(snapshot, options=DecisionOptions(missing_dependency_timeout=0))
    assert fail_on_dependency(for_ever, at(1e6)) is None
    assert fail_on_dependency(replace(snapshot, job=job(admitted=True)), at(160)) is None


def test_a_parked_job_has_met_its_dependencies_whatever_becomes_of_them() -> None:
    waiting = [{"kind": "Signal", "key": "go"}]
    parked = job(Phase.PENDING, reason="WaitingForSignal", waiting=waiting, parks=1)
    dead = related("dead", Phase.DEAD_LETTER)
    snapshot = replace(seen(parked), dependencies=Dependencies((on("dead", dead), on("gone"))))
    assert moved(snapshot, at(1e6)) is None
    sent = {"signals": {"go": {"sentBy": "ada"}}}
    told = job(Phase.PENDING, reason="WaitingForSignal", waiting=waiting, parks=1, spec=sent)
    assert moved(replace(snapshot, job=told), at(1)) == ("Queued", "WaitOver")


@pytest.mark.parametrize(
    ("names", "way"),
    [
        ("ab", "a → b → a"),
        ("abcde", "a → b → c → d → e → a"),
        ("abcdef", "a → b → c → (1 more) → e → f → a"),
    ],
)
def test_of_a_long_cycle_three_names_at_each_end_are_told(names: str, way: str) -> None:
    cycle = tuple(related(name, Phase.PENDING) for name in names)
    found = dependency_failure(Dependencies(cycle=cycle), "ns", Missing(None, 0), at(0))
    assert isinstance(found, DependencyFailure)
    assert found.message == f"cannot start: jobs wait for one another: {way}"
