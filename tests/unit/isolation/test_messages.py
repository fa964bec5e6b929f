"""What the worker and a child tell each other survives its form as JSON."""

from dataclasses import fields, replace
from typing import Any

import orjson
import pytest

from asyncjob.app import ChildView, JobInfo, JobParent
from asyncjob.app.child_jobs import ChildRef, ItemCounts
from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.errors import AttemptOverError, ChildGoneError, SubmitForbiddenError
from asyncjob.errors import AsyncJobError, ForbiddenError, ThrottledError
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.lifecycle.phases import Phase
from asyncjob.offload import StoreUnavailableError
from asyncjob.offload.store import ObjectStat
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.protocol import (
    FileRequest,
    ListRequest,
    ResultRequest,
    RunRequest,
    SubmitRequest,
    WaitRequest,
    WorkerRequest,
)

INFO = JobInfo(
    namespace="ns",
    name="n",
    uid="u",
    type="t",
    queue="q",
    attempt=2,
    retries=1,
    max_retries=3,
    last_checkpoint={"row": 1},
    request={"headers": {"a": ["b"]}},
    traceparent="00-x",
    priority=7,
    parent=JobParent("p-uid", "p"),
    scheduled_time="2026-01-01T03:00:00.000Z",
    steps={"charge": {"sizeBytes": 2, "result": "ok"}},
    waits={"cooling-off": {"kind": "Sleep", "until": "2026-01-02T03:00:00Z"}},
    parks=1,
    created_at="2026-01-01T02:59:00Z",
)
VIEW = ChildView(
    "c", "c1", "leaf", Phase.DEAD_LETTER, "Why", "words", 2, None, {"uri": "x"}, "E", "C", "m"
)


def over_the_wire(message: Any) -> Any:
    return orjson.loads(orjson.dumps(message))


@pytest.mark.parametrize("parent", [JobParent("p-uid", "p"), JobParent("p-uid"), None])
def test_all_that_a_job_is_arrives(parent: JobParent | None) -> None:
    values: Any = {field.name: getattr(INFO, field.name) for field in fields(JobInfo)}
    info = JobInfo(**{**values, "parent": parent})
    assert all(values.values()), "a new field has to be set here, so that its way is tested"
    run = RunRequest(info, {"p": 1}, 12.5, 64)
    assert protocol.read_run(over_the_wire(protocol.run_message(run))) == run


@pytest.mark.parametrize(
    "question",
    [
        SubmitRequest(ChildManifest("c", "hash", {"spec": {"payload": [1, None]}}, "key")),
        SubmitRequest(ChildManifest("c", "hash", {}, None)),
        WaitRequest(ChildRef("c", "c1"), 1.5),
        WaitRequest(ChildRef("c", "c1"), None),
        WaitRequest(ChildRef("c", "c1", "AsyncArray"), None),
        SubmitRequest(ChildManifest("c", "hash", {}, None, "AsyncArray")),
        ListRequest(),
        FileRequest("s3://bucket/a.jsonl"),
        FileRequest("s3://bucket/a.jsonl", (0, 7)),
        ResultRequest("s3://bucket/results/ns/u", "0", "1-1-j-0.jsonl", b'{"item":0}\n'),
    ],
)
def test_a_question_arrives_as_it_was_asked(question: WorkerRequest) -> None:
    message = over_the_wire(protocol.ask_message(3, question))
    assert (protocol.read_number(message), protocol.read_request(message)) == (3, question)


def test_answers_arrive_as_they_were_given() -> None:
    ref = ChildRef("c", "c1")
    assert protocol.read_ref(over_the_wire(protocol.answer_value(ref))) == ref
    seen = protocol.read_view(over_the_wire(protocol.answer_value(VIEW)))
    assert (seen, seen.finished) == (VIEW, True)
    assert seen.phase is Phase.DEAD_LETTER
    array = ChildView("a", "a1", "leaf", ArrayPhase.FAILED, "", "", 0, kind="AsyncArray")
    told = protocol.read_view(
        over_the_wire(protocol.answer_value(replace(array, items=ItemCounts(3, 1, 2, "0-1"))))
    )
    assert (told.phase, told.items) == (ArrayPhase.FAILED, ItemCounts(3, 1, 2, "0-1"))
    assert told.phase in ENDED_ARRAY_PHASES
    assert isinstance(told.phase, ArrayPhase)
    assert protocol.read_views(over_the_wire(protocol.answer_value([VIEW, VIEW]))) == [VIEW, VIEW]


def test_what_files_hold_arrives_as_it_is() -> None:
    data = bytes(range(256))
    assert protocol.read_part(over_the_wire(protocol.file_answer(data))) == data
    stat = ObjectStat(7, "etag=x size=7")
    assert protocol.read_stat(over_the_wire(protocol.file_answer(stat))) == stat


class OfAPluginError(ChildGoneError):
    """An error that is known on one side only."""


class ForeignError(Exception):
    """An error that is none of ours."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (SubmitForbiddenError("no"), SubmitForbiddenError, "no"),
        (AttemptOverError(), AttemptOverError, str(AttemptOverError())),
        (TimeoutError("late"), TimeoutError, "late"),
        (StoreUnavailableError("away"), StoreUnavailableError, "away"),
        (ThrottledError("slow"), ThrottledError, "slow"),
        (OfAPluginError("gone"), ChildGoneError, "gone"),
        (ForeignError("x"), AsyncJobError, "ForeignError: x"),
    ],
)
def test_an_error_arrives_as_its_own_class_or_the_nearest_known(
    error: Exception, kind: type[Exception], message: str
) -> None:
    arrived = protocol.error_from_json(over_the_wire(protocol.error_to_json(error)))
    assert (type(arrived), str(arrived)) == (kind, message)


def test_an_error_of_the_api_server_keeps_its_status() -> None:
    error = ForbiddenError("no", status=403, reason="Forbidden")
    arrived = protocol.error_from_json(over_the_wire(protocol.error_to_json(error)))
    assert isinstance(arrived, ForbiddenError)
    assert (arrived.status, arrived.reason) == (403, "Forbidden")
