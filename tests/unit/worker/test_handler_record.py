"""What a worker records of its handlers, where it is asked to."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.audit.evidence import HandlerRecord
from asyncjob.audit.recorded_object import value_digest
from asyncjob.errors import ConfigError
from asyncjob_worker.execution.attempt import AttemptServices
from asyncjob_worker.execution.handler_record import HandlerRecorder
from asyncjob_worker.execution.runner import JobRunner
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from support.parts.callbacks import ignore, no_children
from support.parts.worker_parts import (
    held,
    ignore_step,
    never_park,
    no_cluster,
    no_hooks,
    no_step_writer,
)

STAY = threading.Event()


def runner(record: HandlerRecorder | None) -> JobRunner:
    app = WorkerApp()

    @app.handler("echo")
    def echo(job: JobContext, payload: Any) -> Any:
        if payload == "stay":
            STAY.wait(30)
        job.checkpoint({"row": 1.0})
        return payload

    async def write(_: HeldJob, change: Any) -> Any:
        return change

    silent = SimpleNamespace(add=lambda _: None, remove=lambda _: None)
    settings = Settings(concurrency=1, stop_grace_seconds=0.0)
    return JobRunner(
        app,
        settings,
        heartbeat=cast("HeartbeatThread", silent),
        outcome_writer=cast("OutcomeWriter", SimpleNamespace(write=write)),
        on_exhausted=STAY.set,
        services=AttemptServices.from_settings(
            settings,
            no_cluster,
            no_children,
            record=record,
            step_writer=no_step_writer(),
            on_step_stored=ignore_step,
            may_park=never_park,
            server_time=time.time,
        ),
        events=no_hooks(),
        metrics=Metrics(),
        tracing=NO_TRACING,
        on_abandoned=ignore,
    )


def lines(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


async def test_begin_checkpoints_and_end_are_recorded_with_the_claim(tmp_path: Path) -> None:
    file = tmp_path / "record"
    job = held()
    await runner(HandlerRecorder(str(file))).run(job)
    assert sorted(one["event"] for one in lines(file)) == ["checkpoint", "ended", "started"]
    for one in lines(file):
        assert (one["uid"], one["attempt"], one["claim"]) == (
            job.job.uid,
            job.job.attempt,
            job.claim,
        )
    read = HandlerRecord()
    read.add_file(str(file))
    (run,) = read.of(job.job.uid, job.job.attempt)
    assert run.checkpoints == [value_digest({"row": 1})]
    assert run.started <= run.ended


async def test_a_handler_that_ignores_its_stop_is_recorded_as_abandoned(tmp_path: Path) -> None:
    file = tmp_path / "record"
    job = held(spec={"payload": "stay"})
    job.started_at -= job.policy.execution_timeout_seconds
    await runner(HandlerRecorder(str(file))).run(job)
    assert "abandoned" in [one["event"] for one in lines(file)]


async def test_a_worker_records_nothing_unless_it_is_asked_to() -> None:
    await runner(None).run(held())
    assert Settings().handler_record == ""


async def test_a_full_disk_ends_the_record_and_no_job() -> None:
    made = HandlerRecorder("/dev/full")
    await runner(made).run(held())
    assert made._file is None


def test_a_file_that_cannot_be_opened_keeps_the_worker_from_starting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--handler-record"):
        HandlerRecorder(str(tmp_path / "missing" / "record"))
