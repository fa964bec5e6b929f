"""One attempt: from the payload to the outcome."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from asyncjob.app import JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.names import PARENT_LABEL, PARENT_NAME_ANNOTATION, SCHEDULED_TIME_ANNOTATION
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.attempt import Attempt, AttemptServices
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings
from support.parts.callbacks import ignore
from support.parts.worker_parts import attempt_services, held, job


class Picky(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def look(cls, value: int) -> int:
        return 1 // value


@pytest.fixture
def tools() -> Iterator[AttemptServices]:
    tools = attempt_services()
    yield tools
    tools.executor.close()


async def run(
    app: WorkerApp, of: HeldJob, tools: AttemptServices, **settings: Any
) -> PhaseChange | None:
    return await Attempt(
        of, app.handlers["echo"], app, Settings(**settings), tools, on_start=ignore
    ).run()


async def test_a_handler_sees_the_time_that_its_run_is_for(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> str:
        return str(job.scheduled_time)

    answer = job()
    answer["metadata"]["annotations"] = {SCHEDULED_TIME_ANNOTATION: "2026-01-01T03:00:00.000Z"}
    move = await run(app, HeldJob.from_response(answer, boottime()), tools)
    assert move
    assert move.fields["result"] == "2026-01-01 03:00:00+00:00"


async def test_a_handler_sees_its_job(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext, payload: Any) -> Any:
        return [job.name, job.attempt, job.fencing_token, job.last_checkpoint, payload]

    of = held(name="n", uid="u", spec={"payload": {"a": 1}}, checkpoint={"row": 1})
    move = await run(app, of, tools)
    assert move
    assert move.fields["result"] == ["n", 1, "u/1", {"row": 1}, {"a": 1}]


async def test_a_handler_knows_who_has_submitted_its_job(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> Any:
        return [job.parent and [job.parent.uid, job.parent.name], job.info.priority]

    metadata = {
        "labels": {PARENT_LABEL: "p-uid"},
        "annotations": {PARENT_NAME_ANNOTATION: "p"},
    }
    child = job(spec={"priority": 4})
    of = HeldJob.from_response({**child, "metadata": {**child["metadata"], **metadata}}, boottime())
    for known, parent in ((of, ["p-uid", "p"]), (held(spec={"priority": 4}), None)):
        move = await run(app, known, tools)
        assert move
        assert move.fields["result"] == [parent, 4]


async def test_a_payload_against_the_schema_is_a_dead_letter(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext, payload: Picky) -> None:
        raise AssertionError("started")

    move = await run(app, held(spec={"payload": {"number": "x"}}), tools)
    assert move
    assert move.reason is Reason.INVALID_PAYLOAD


async def test_what_a_validator_raises_is_a_failure_not_the_end_of_the_worker(
    tools: AttemptServices,
) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext, payload: Picky) -> None:
        raise AssertionError("started")

    move = await run(app, held(spec={"payload": {"number": 0}}), tools)
    assert move
    assert move.reason is Reason.HANDLER_FAILED


async def test_a_validation_error_of_the_handlers_own_is_an_ordinary_failure(
    tools: AttemptServices,
) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        Picky.model_validate({"number": "x"})

    move = await run(app, held(), tools)
    assert move
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)


async def test_a_payload_from_elsewhere_is_refused(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        raise AssertionError("started")

    move = await run(app, held(spec={"payloadFrom": {"uri": "s3://b/k"}}), tools)
    assert move
    assert move.reason is Reason.INVALID_PAYLOAD


async def test_checkpoints_have_the_configured_limit(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        await job.checkpoint("x" * 50)

    move = await run(app, held(), tools, max_free_json=40)
    assert move
    assert move.fields["message"] == "the checkpoint has 52 bytes, the limit is 40"


async def test_a_refused_report_ends_with_its_message(tools: AttemptServices) -> None:
    app, of = WorkerApp(), held()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        of.stop_refused("the checkpoint has 9 bytes too many")

    move = await run(app, of, tools)
    assert move
    assert (move.reason, move.fields["message"]) == (
        Reason.RESULT_REFUSED,
        "the checkpoint has 9 bytes too many",
    )


async def test_a_fenced_attempt_reports_nothing(tools: AttemptServices) -> None:
    app, of = WorkerApp(), held()

    @app.handler("echo")
    async def echo(job: JobContext) -> str:
        of.stop(Stop.FENCED)
        return "done all the same"

    assert await run(app, of, tools) is None
