"""How an outcome gets into the store, whatever the answers are."""

import itertools
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app import outcomes
from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.phase_change import Failure, PhaseChange, fail, park, succeed
from asyncjob.lifecycle.waits import WaitView
from asyncjob_worker.leases import ownership
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import MAX_OUTCOME_REFUSALS, OutcomeWriter
from support.parts.worker_parts import NOW, Call, Pauses, ScriptedSession, held, job

OK: dict[str, Any] = {}
LOST = UnknownOutcomeError("no answer")
GONE = ConflictError("changed")


def success(of: HeldJob, result: Any = None) -> PhaseChange:
    return succeed(of.job, now=NOW, result=result)


def ended(**changes: Any) -> dict[str, Any]:
    return job(**{"phase": "Succeeded", "lastTransitionTime": NOW, **changes})


def refused(of: HeldJob, move: PhaseChange, error: ApiError) -> PhaseChange:
    return outcomes.refused_by_api_server(of.job, move, error, now=NOW)


async def report(
    session: ScriptedSession, of: HeldJob, move: PhaseChange | None = None
) -> PhaseChange | None:
    reporter = OutcomeWriter(session.session, refused, Pauses())
    return await reporter.write(of, move or success(of))


def phase(call: Call) -> Any:
    found = call.operation("/status/phase")
    return found and found["value"]


async def test_an_outcome_is_one_write() -> None:
    session = ScriptedSession(json_patch=[OK])
    assert await report(session, held())
    assert [call.verb for call in session.calls] == ["json_patch"]


async def test_a_lost_answer_is_followed_by_a_look_that_finds_the_outcome_stored() -> None:
    session = ScriptedSession(json_patch=[LOST], get=[ended()])
    assert await report(session, held())
    assert len(session.made("json_patch")) == 1


async def test_a_write_that_got_lost_is_sent_again() -> None:
    session = ScriptedSession(json_patch=[LOST, OK], get=[job()])
    assert await report(session, held())
    first, second = session.made("json_patch")
    assert first.body == second.body


async def test_a_write_that_took_effect_late_is_found_after_the_second_is_refused() -> None:
    session = ScriptedSession(json_patch=[LOST, InvalidError("no lease")], get=[job(), ended()])
    assert await report(session, held())


async def test_a_conflict_alone_does_not_fence() -> None:
    session = ScriptedSession(json_patch=[GONE, GONE, OK], get=[job()])
    assert await report(session, held())


async def test_a_finished_result_is_tried_through_an_outage() -> None:
    session = ScriptedSession(json_patch=[*[LOST] * 20, OK], get=[*[LOST] * 19, job()])
    assert await report(session, held())


@pytest.mark.parametrize(
    "found",
    [
        job(claim="c2"),
        job(uid="u2"),
        job(phase="Queued"),
        job(phase="Retrying", lastTransitionTime="by the operator"),
        ended(lastTransitionTime="by somebody else"),
        ObjectNotFoundError("gone"),
    ],
    ids=["claim", "uid", "requeued", "recovered", "ended", "deleted"],
)
async def test_what_is_no_longer_ours_is_left_alone_and_the_log_says_so(found: Any) -> None:
    session = ScriptedSession(json_patch=[GONE], get=[found])
    with capture_logs() as logs:
        assert not await report(session, held())
    assert len(session.made("json_patch")) == 1
    assert any("fenced" in entry["event"] for entry in logs)


@pytest.mark.parametrize(("refusals", "is_stored"), [(4, True), (100, False)])
async def test_a_finished_result_outlives_a_refused_token_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, refusals: int, is_stored: bool
) -> None:
    times = itertools.count(1000.0, ownership.UNAUTHORIZED_SECONDS / 6)
    monkeypatch.setattr(ownership, "boottime", lambda: next(times))
    refused = UnauthorizedError("401")
    session = ScriptedSession(
        json_patch=[*[refused] * refusals, OK], get=[*[refused] * refusals, job()]
    )
    with capture_logs():
        assert bool(await report(session, held())) is is_stored


async def test_after_the_lease_can_have_ended_nothing_is_written_before_a_look() -> None:
    session = ScriptedSession(json_patch=[OK], get=[job(claim="c2")])
    with capture_logs() as logs:
        assert not await report(session, held(sent_at=0.0))
    assert not session.made("json_patch")
    assert any("fenced" in entry["event"] for entry in logs)


async def test_a_job_still_ours_after_its_lease_has_run_out_gets_its_outcome() -> None:
    session = ScriptedSession(json_patch=[OK], get=[LOST, job()])
    assert await report(session, held(sent_at=0.0))
    assert [call.verb for call in session.calls] == ["get", "get", "json_patch"]


async def test_a_result_too_large_for_the_store_becomes_a_refusal_with_size_and_limit() -> None:
    session = ScriptedSession(json_patch=[TooLargeError("request is too large"), OK], get=[job()])
    of = held()
    assert await report(session, of, success(of, "x" * 1000))
    _, second = session.made("json_patch")
    assert phase(second) == "DeadLetter"
    message = str(second.operation("/status/message"))
    assert "1002 bytes" in message
    assert "1572864" in message
    assert second.operation("/status/reason") == {
        "op": "add",
        "path": "/status/reason",
        "value": "ResultRefused",
    }


async def test_a_checkpoint_too_large_for_the_store_is_left_out_before_the_result_is() -> None:
    of = held()
    of.checkpoint("x" * 1000)
    session = ScriptedSession(json_patch=[TooLargeError("too large"), OK], get=[job()])
    assert await report(session, of, success(of, "y"))
    first, second = session.made("json_patch")
    assert first.operation("/status/checkpoint")
    assert not second.operation("/status/checkpoint")
    assert phase(second) == "Succeeded"


async def test_a_failure_is_not_turned_into_a_refused_result() -> None:
    of = held()
    failure = fail(of.job, Failure("E", "Internal", "no"), now=NOW, jitter_sample=0.5)
    session = ScriptedSession(json_patch=[TooLargeError("too large"), OK], get=[job()])
    assert await report(session, of, failure)
    assert [phase(call) for call in session.made("json_patch")] == ["Retrying", "Retrying"]


async def test_a_result_that_the_api_server_refuses_becomes_a_refusal_with_its_words() -> None:
    of = held()
    complaint = InvalidError("status.result: a policy does not like it")
    session = ScriptedSession(json_patch=[complaint, OK], get=[job()])
    assert await report(session, of, success(of, "y"))
    second = session.made("json_patch")[1]
    assert phase(second) == "DeadLetter"
    assert "does not like it" in str(second.operation("/status/message"))


async def test_a_refused_outcome_is_built_again_on_what_is_found() -> None:
    of = held()
    found = job(message="by hand")
    session = ScriptedSession(json_patch=[InvalidError("cannot remove"), OK], get=[found])
    assert await report(session, of)
    first, second = session.made("json_patch")
    assert not first.operation("/status/message")
    assert second.operation("/status/message") == {"op": "remove", "path": "/status/message"}


async def test_an_outcome_refused_for_good_is_given_up_with_the_api_servers_words() -> None:
    session = ScriptedSession(json_patch=[InvalidError("rule 7")], get=[job()])
    with capture_logs() as logs:
        assert not await report(session, held())
    assert len(session.made("json_patch")) == MAX_OUTCOME_REFUSALS
    (last,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert "rule 7" in last["error"]


async def test_missing_permission_is_waited_out_until_another_decides() -> None:
    answers = [*[job()] * 5, job(phase="Retrying", lastTransitionTime="by the operator")]
    session = ScriptedSession(json_patch=[ForbiddenError("rbac")], get=answers)
    assert not await report(session, held())
    assert len(session.made("json_patch")) == 6


async def test_a_park_that_the_job_has_no_room_for_ends_it_in_words() -> None:
    session = ScriptedSession(json_patch=[TooLargeError("request is too large"), OK], get=[job()])
    of = held()
    parked = park(of.job, {}, [WaitView("Signal", "go")], now=NOW)
    stored = await report(session, of, parked)
    assert stored is not None
    assert (stored.target.value, stored.reason) == ("DeadLetter", "ResultRefused")
    assert "the job has no room to be parked: what it waits for has" in str(stored.fields)


async def test_a_park_that_is_refused_for_another_reason_is_given_up() -> None:
    session = ScriptedSession(
        json_patch=[InvalidError("a rule")] * MAX_OUTCOME_REFUSALS, get=[job()] * 9
    )
    of = held()
    assert await report(session, of, park(of.job, {}, [WaitView("Signal", "go")], now=NOW)) is None


async def test_a_park_that_is_too_large_is_tried_without_what_payloads_it_shows() -> None:
    session = ScriptedSession(json_patch=[TooLargeError("request is too large"), OK], get=[job()])
    of = held()
    waiting = [
        WaitView("Signal", "go", payload_schema={"type": "string"}),
        WaitView("Signal", "no"),
    ]
    stored = await report(session, of, park(of.job, {}, waiting, now=NOW))
    assert stored is not None
    assert stored.target.value == "Pending"
    first, second = session.made("json_patch")
    assert "payloadSchema" in str(first.operation("/status/waiting"))
    lean = [{"kind": "Signal", "key": "go"}, {"kind": "Signal", "key": "no"}]
    assert (second.operation("/status/waiting") or {})["value"] == lean
