"""Steps of handlers in processes of their own: taken there, kept by the worker."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from asyncjob.app.context import Stop
from asyncjob.errors import InvalidError
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.step_records import MAX_STEP_BYTES, step_record
from asyncjob.offload import Address
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.protocol import FrameError, StepRequest, StepVerb
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import OffloadSettings
from support.parts.isolation import IsolatedAttempts, job
from support.parts.worker_parts import NOW, ScriptedSession
from support.parts.worker_parts import job as an_object

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Harness:
    """Attempts in processes, whose steps are written by a script."""

    def __init__(self) -> None:
        self.attempts = IsolatedAttempts()
        self.session = ScriptedSession()

    def answer(self, *answers: Any, folder: Path | None = None) -> None:
        self.session = ScriptedSession(json_patch=answers, get=[an_object()])
        steps = self.attempts.tools.steps
        url = Address.folder(f"file://{folder}") if folder else None
        self.attempts.tools = replace(
            self.attempts.tools,
            steps=replace(
                steps, writer=StepWriter(self.session.session), offload=OffloadSettings(url=url)
            ),
        )

    def written(self) -> dict[str, Any]:
        records: dict[str, Any] = {}
        for call in self.session.made("json_patch"):
            for one in call.body:
                if one["path"] == "/status/steps":
                    records.update(one["value"])
                elif one["path"].startswith("/status/steps/"):
                    records[one["path"].rpartition("/")[2]] = one["value"]
        return records


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[Harness]:
    made = Harness()
    yield made
    await made.attempts.close()


async def test_steps_are_taken_in_the_process_and_written_by_the_worker(harness: Harness) -> None:
    harness.answer({})
    total, pid, done = await harness.attempts.result("steps", 5)
    assert (total, done) == (5, [])
    assert {key: one["result"] for key, one in harness.written().items()} == {
        "charge": {"total": 5},
        "pid": pid,
    }


@pytest.mark.parametrize("type_", ["steps", "steps-sync"])
async def test_steps_that_are_done_reach_the_process(harness: Harness, type_: str) -> None:
    harness.answer({})
    results: dict[str, Any] = {"charge": {"total": 7}, "text": "seven77", "pid": 1}
    kept = {
        key: step_record(attempt=1, started=NOW, now=NOW, size=1, result=value)
        for key, value in results.items()
    }
    move = await harness.attempts.run(job(type_, 5, steps=kept))
    assert move
    assert move.fields["result"] == [7, 1, ["charge", "pid", "text"]]
    assert harness.session.calls == []


async def test_a_large_result_is_offloaded_by_the_worker_and_read_again(
    harness: Harness, tmp_path: Path
) -> None:
    harness.answer({}, folder=tmp_path)
    assert (await harness.attempts.result("steps-sync", MAX_STEP_BYTES))[0] == MAX_STEP_BYTES
    kept = harness.written()
    assert "resultRef" in kept["text"]
    harness.answer({}, folder=tmp_path)
    move = await harness.attempts.run(job("steps-sync", 1, steps=kept))
    assert move
    result: Any = move.fields["result"]
    assert result[0] == MAX_STEP_BYTES


async def test_what_the_worker_refuses_ends_the_job_and_names_the_step(harness: Harness) -> None:
    harness.answer(InvalidError("a rule"))
    move = await harness.attempts.run(job("steps-sync", 1))
    assert move
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert "refuses step 'text'" in str(move.fields["message"])


async def test_a_stopped_handler_begins_no_step_and_undoes_nothing(
    harness: Harness, tmp_path: Path
) -> None:
    harness.answer({})
    of = job("steps-stopped", str(tmp_path))
    task, _ = await harness.attempts.begin(of, tmp_path)
    of.stop(Stop.DRAINING)
    move = await task
    assert move
    assert (move.target, move.reason) == (Phase.QUEUED, Reason.RELEASED)
    assert list(harness.written()) == ["before"]
    assert not (tmp_path / "undone").exists()


@pytest.fixture
def parking(harness: Harness) -> IsolatedAttempts:
    """Return attempts in processes whose jobs may be parked."""

    async def may_park(_: object) -> bool:
        return True

    async def read_object(_: str) -> JsonObject:
        return {}

    harness.answer({})
    steps = harness.attempts.tools.steps
    waits = replace(steps.waits, may_park=may_park, read_object=read_object)
    harness.attempts.tools = replace(harness.attempts.tools, steps=replace(steps, waits=waits))
    return harness.attempts


TOLD: JsonObject = {"go": {"payload": 1, "sentBy": "ada"}}


async def test_a_job_is_parked_for_all_that_its_process_waits_for(
    parking: IsolatedAttempts,
) -> None:
    move = await parking.run(job("first-of", False))
    assert move
    waiting: Any = move.fields["waiting"]
    assert [(one["kind"], one["key"]) for one in waiting] == [("Signal", "go"), ("Sleep", "day")]


async def test_a_signal_that_is_there_parks_no_process_that_sleeps_too(
    parking: IsolatedAttempts,
) -> None:
    for _ in range(3):
        move = await parking.run(job("first-of", False, spec={"signals": TOLD}))
        assert move
        assert (move.target, move.fields.get("result")) == (Phase.SUCCEEDED, ["told"])


async def test_what_a_process_waits_for_no_longer_does_not_wake_its_job(
    parking: IsolatedAttempts,
) -> None:
    move = await parking.run(job("first-of", True, spec={"signals": TOLD}))
    assert move
    waiting: Any = move.fields["waiting"]
    assert [(one["kind"], one["key"]) for one in waiting] == [("Signal", "then")]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("body", "sleep 'nap': a wait inside the body of step 'all'"),
        ("dropped", "signal 'approval' was never awaited"),
        ("kept", "step 'charge' does not fit its type"),
    ],
)
async def test_a_process_that_misuses_waits_or_steps_ends_as_any_handler(
    parking: IsolatedAttempts, harness: Harness, how: str, words: str
) -> None:
    kept = {"charge": step_record(attempt=1, started=NOW, now=NOW, size=1, result="odd")}
    move = await parking.run(job("steps-misused", how, steps=kept))
    assert move
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    assert words in str(move.fields["message"])
    error: Any = move.fields["error"]
    assert error["type"] == "StepError"
    assert harness.written() == {}


@pytest.mark.parametrize("verb", StepVerb)
async def test_a_request_about_a_step_arrives_as_it_was_sent(verb: StepVerb) -> None:
    request = StepRequest(verb, "k", {"a": None})
    assert protocol.read_request(protocol.ask_message(1, request)) == request


async def test_a_request_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(FrameError, match="unknown kind"):
        protocol.read_request({"step": {"verb": "undo", "key": "k", "value": None}})
