import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.job_status import JobError, Progress, Waiting
from asyncjob.rest.job_records import SignalInfo, StepInfo, WaitInfo
from asyncjob.rest.jobs import Job, Link
from asyncjob_gateway.dashboard.formatting import MAX_JSON_CHARS
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.permissions import Permissions
from asyncjob_gateway.dashboard.views.job import JobPage, available_actions, make_job_page
from support.objects.rest_jobs import NOW, before, happened, whole

ALL = Permissions(**dict.fromkeys(Permissions.__dataclass_fields__, True))


def shown(job: Job, allowed: Permissions = ALL) -> JobPage:
    return make_job_page(job, [], allowed, Links(), NOW)


@pytest.mark.parametrize(
    ("phase", "wanted"),
    [
        (Phase.QUEUED, {"cancel", "suspend", "priority"}),
        (Phase.PENDING, {"cancel", "suspend", "priority"}),
        (Phase.RUNNING, {"cancel"}),
        (Phase.RETRYING, {"cancel", "suspend", "priority"}),
        (Phase.SUCCEEDED, {"rerun"}),
        (Phase.DEAD_LETTER, {"rerun", "redrive", "dismiss"}),
        (Phase.CANCELLED, {"rerun"}),
    ],
)
def test_what_is_offered_is_what_the_phase_admits_of(phase: Phase, wanted: set[str]) -> None:
    offered = available_actions(whole(phase=phase), ALL)

    assert {name for name in offered.__slots__ if getattr(offered, name)} == wanted


def test_a_suspended_job_can_be_resumed_and_not_suspended() -> None:
    offered = available_actions(whole(suspended=True), ALL)

    assert offered.resume
    assert not offered.suspend


def test_nothing_is_offered_twice_or_to_those_who_may_not() -> None:
    assert not available_actions(whole(cancelling=True), ALL).cancel
    assert not available_actions(whole(phase=Phase.DEAD_LETTER, cancelling=True), ALL).dismiss
    assert not available_actions(whole(), Permissions(read_payload=True)).any


def test_the_timeline_begins_with_the_newest_and_tells_how_long_attempts_ran() -> None:
    failed = happened(50, Phase.RETRYING, ran=2.5, reason="HandlerFailed", attempt=1, worker="w-0")
    job = whole(phase=Phase.RETRYING)

    newest, oldest = shown(job.model_copy(update={"history": [*job.history, failed]})).timeline

    assert (newest.word, newest.ran, newest.worker) == ("Retrying", "2 s", "w-0")
    assert newest.meaning == "The handler raised; a retry is left."
    assert oldest.word == "Created"


def test_a_running_attempt_is_on_the_timeline_while_it_runs() -> None:
    job = whole(phase=Phase.RUNNING, started_at=before(5), attempt=2, worker="w-1")

    now = shown(job).timeline[0]

    assert (now.word, now.message) == ("Running", "attempt 2 on w-1")


def test_payload_and_result_are_shown_to_those_allowed_only() -> None:
    job = whole(phase=Phase.SUCCEEDED, payload={"a": 1}, result=[2], checkpoint=3)

    assert [one.name for one in shown(job).documents] == ["Payload", "Checkpoint", "Result"]
    hidden = shown(job, Permissions(control=True))
    assert hidden.documents == []
    assert hidden.payload_hidden


def test_steps_and_waits_are_one_list_in_the_order_of_their_times() -> None:
    step = StepInfo(
        key="charge", attempt=2, started_at=before(9), completed_at=before(5), size_bytes=12_345
    )
    waits = [
        WaitInfo(key="nap", kind="Sleep", until=before(7), over=True),
        WaitInfo(key="late", kind="Signal", until=before(3), over=True),
        WaitInfo(key="came", kind="Signal", until=before(-20)),
        WaitInfo(key="approval", kind="Signal", until=before(-60)),
    ]
    waiting = [
        Waiting(kind="Signal", key="approval", until=before(-60)),
        Waiting(kind="Children", key="child pack"),
    ]
    signals = [SignalInfo(name="came", sent_by="ada")]
    job = whole(steps=[step], waits=waits, waiting=waiting, signals=signals, phase=Phase.PENDING)

    for allowed in (Permissions(read_payload=True), Permissions()):
        rows = shown(job, allowed).records
        assert [(one.kind, one.key, one.state) for one in rows] == [
            ("Sleep", "nap", "over"),
            ("Step", "charge", "done"),
            ("Signal", "late", "timed out"),
            ("Signal", "came", "has come"),
            ("Signal", "approval", "is waited for until"),
            ("", "child pack", "is waited for"),
        ]
        assert rows[1].more == "attempt 2, took 4 s, result of 12,345 bytes"
        assert [bool(one.at) for one in rows] == [True] * 3 + [False, True, False]
        assert [one.key for one in rows if one.is_open] == ["approval", "child pack"]
    assert shown(whole()).records == []


def test_signals_are_listed_with_who_sent_them_and_payloads_only_for_those_allowed() -> None:
    told = whole(signals=[SignalInfo(name="go", sent_by="ada", sent_at=before(5), payload=[1])])

    [row] = shown(told).signals
    assert (row.name, row.sender, row.text, row.was_cut) == ("go", "ada", "[\n  1\n]", False)
    assert row.at
    assert shown(told, Permissions()).signals[0].text == ""
    assert shown(whole()).signals == []


def test_of_a_signal_that_is_long_to_read_it_is_said_that_it_was_cut() -> None:
    long = [[1] * 10] * 1000
    told = whole(signals=[SignalInfo(name="go", sent_by="ada", payload=long)])

    [row] = shown(told).signals
    assert (len(row.text), row.was_cut) == (MAX_JSON_CHARS, True)
    [hidden] = shown(told, Permissions()).signals
    assert (hidden.text, hidden.was_cut) == ("", False)


def test_what_a_parked_job_waits_for_is_a_fact_and_fills_the_form() -> None:
    waits = [
        Waiting(kind="Sleep", key="nap", until=before(-60)),
        Waiting(kind="Signal", key="go"),
        Waiting(kind="Signal", key="late", until=before(-60)),
        Waiting(kind="Children", key="child pack-1 (timed)", until=before(-60)),
    ]
    page = shown(whole(phase=Phase.PENDING, waiting=waits))

    assert [one.name for one in page.wanted] == ["go", "late"]
    facts = {fact.name: fact for fact in page.facts}
    assert facts["Waits for"].value == "Signal go"
    assert facts["Signal late times out"].time
    assert facts["Sleep nap is over"].time
    assert facts["child pack-1 (timed) times out"].time
    assert shown(whole()).wanted == []


@pytest.mark.parametrize(("parks", "text"), [(0, "5"), (1, "5 (1 park)"), (4, "5 (4 parks)")])
def test_attempts_say_how_many_of_them_were_parks(parks: int, text: str) -> None:
    facts = {fact.name: fact.value for fact in shown(whole(attempt=5, parks=parks)).facts}
    assert facts["Attempts"] == text


def test_the_deadline_is_a_fact() -> None:
    facts = {fact.name: fact for fact in shown(whole(deadline_at=before(-60))).facts}
    assert facts["Deadline"].time
    assert "Deadline" not in {fact.name for fact in shown(whole()).facts}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("control", [True, False])
def test_a_signal_is_offered_while_a_job_takes_one_to_those_who_may(
    phase: Phase, control: bool
) -> None:
    ended = phase in {Phase.SUCCEEDED, Phase.DEAD_LETTER, Phase.CANCELLED}
    allowed = Permissions(control=control)

    assert available_actions(whole(phase=phase), allowed, may_signal=True).signal is not ended
    assert not available_actions(whole(phase=phase), allowed).signal


def test_the_reason_is_not_told_twice() -> None:
    error = JobError(type="Fail", category="Other", message="no such user")
    dead = whole(
        phase=Phase.DEAD_LETTER, reason="NotRetryable", error=error, message="no such user"
    )

    assert shown(dead).why == "The handler raised Fail, or an error of a category not retried."
    assert (
        shown(whole(reason="QueuePaused", message="queue a is paused")).why == "queue a is paused"
    )


def test_facts_link_to_relatives_and_leave_out_what_there_is_not() -> None:
    job = whole(parent=Link(name="up"), rerun_of=Link(name="first"), cron_job=Link(name="nightly"))

    links = {fact.name: fact.url for fact in shown(job).facts if fact.url}

    assert links["Submitted by"] == "/dashboard/jobs/up"
    assert links["Runs again"] == "/dashboard/jobs/first"
    assert links["Cron job"] == "/dashboard/jobs?cronJob=nightly"
    assert all(fact.value or fact.time for fact in shown(job).facts)


def test_how_far_it_came_is_kept_when_it_has_ended() -> None:
    came = Progress(percent=60, message="rendering")
    failed, running = (
        whole(phase=phase, progress=came) for phase in (Phase.DEAD_LETTER, Phase.RUNNING)
    )

    assert {one.name: one.value for one in shown(failed).facts}["Progress"] == "60 %, rendering"
    assert "Progress" not in {one.name for one in shown(running).facts}
    assert shown(running).row.percent == 60


def test_the_jobs_and_arrays_that_it_depends_on_are_linked() -> None:
    needs = [{"name": "first"}, {"array": "thumbs"}]
    facts = [one for one in shown(whole(depends_on=needs)).facts if one.name == "Depends on"]
    assert [one.value for one in facts] == ["first", "array thumbs"]
    assert facts[0].url.endswith("/jobs/first")
    assert facts[1].url.endswith("/arrays/thumbs")
