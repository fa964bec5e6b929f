"""How a step gets into the job, whatever the answers are."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError
from asyncjob.errors import (
    ConflictError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.step_records import step_record
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter
from support.parts.worker_parts import NOW, Call, Pauses, ScriptedSession, held, job

OK: dict[str, Any] = {}
LOST = UnknownOutcomeError("no answer")
RECORD = step_record(attempt=1, started=NOW, now=NOW, size=2, result="ok")


def added(call: Call, path: str) -> Any:
    found = call.operation(path)
    assert found
    return found["value"]


async def write(
    session: ScriptedSession, of: HeldJob, *, key: str = "charge", first: bool = True
) -> None:
    await StepWriter(session.session, Pauses()).write(of, key, RECORD, first=first)


async def test_a_step_is_one_write_that_holds_only_for_this_claim_of_a_running_job() -> None:
    session, of = ScriptedSession(json_patch=[OK]), held()
    await write(session, of)
    (call,) = session.calls
    tests = {one["path"]: one["value"] for one in call.body if one["op"] == "test"}
    assert tests == {
        "/status/claim": of.claim,
        "/status/attempt": of.job.attempt,
        "/status/phase": "Running",
    }
    assert added(call, "/status/steps") == {"charge": RECORD}


async def test_a_further_step_is_added_beside_the_others_whatever_its_key_is() -> None:
    session = ScriptedSession(json_patch=[OK])
    await write(session, held(), key="a/b~c", first=False)
    (call,) = session.calls
    assert added(call, "/status/steps/a~1b~0c") == RECORD


async def test_a_lost_answer_is_followed_by_a_look_that_finds_the_step_stored() -> None:
    session = ScriptedSession(json_patch=[LOST], get=[job(steps={"charge": RECORD})])
    await write(session, held())
    assert len(session.made("json_patch")) == 1


@pytest.mark.parametrize("found", [job(), job(steps={"other": RECORD})])
async def test_a_write_that_got_lost_is_sent_again(found: Any) -> None:
    session = ScriptedSession(json_patch=[LOST, ConflictError("busy"), OK], get=[found])
    await write(session, held())
    assert len(session.made("json_patch")) == 3


@pytest.mark.parametrize(
    "found",
    [
        job(claim="c2"),
        job(uid="u2"),
        job(phase="Queued"),
        job(phase="Cancelled"),
        ObjectNotFoundError("gone"),
    ],
    ids=["claim", "uid", "requeued", "cancelled", "deleted"],
)
async def test_a_step_of_a_job_that_is_no_longer_ours_ends_the_attempt(found: Any) -> None:
    session, of = ScriptedSession(json_patch=[InvalidError("test failed")], get=[found]), held()
    with capture_logs() as logs, pytest.raises(AttemptOverError):
        await write(session, of)
    assert of.stopped is Stop.FENCED
    assert len(session.made("json_patch")) == 1
    assert any("fenced" in entry["event"] for entry in logs)


@pytest.mark.parametrize("error", [InvalidError("a rule"), TooLargeError("too large")])
async def test_what_the_api_server_refuses_though_the_job_is_ours_is_not_sent_again(
    error: Exception,
) -> None:
    session = ScriptedSession(json_patch=[error], get=[job()])
    with pytest.raises(type(error)):
        await write(session, held())
    assert len(session.made("json_patch")) == 1


async def test_a_step_that_an_older_crd_drops_is_refused() -> None:
    session = ScriptedSession(json_patch=[job()])
    with pytest.raises(InvalidError, match=r"does not know status\.steps"):
        await write(session, held())
    await write(ScriptedSession(json_patch=[job(steps={"charge": RECORD})]), held())


async def test_nothing_is_sent_once_the_lease_may_have_ended() -> None:
    late, fenced = held(), held()
    late.sent_at -= 1000
    fenced.stop(Stop.FENCED)
    session = ScriptedSession()
    for of in (late, fenced):
        with pytest.raises(AttemptOverError):
            await write(session, of)
