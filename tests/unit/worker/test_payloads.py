"""Payloads from Secrets, ConfigMaps and stores: what the handler gets, and what it is told."""

import base64
import enum
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from structlog.testing import capture_logs

from asyncjob import WorkerApp
from asyncjob.app import Isolation
from asyncjob.app.context import Stop
from asyncjob.errors import ForbiddenError, ObjectNotFoundError, UnknownOutcomeError
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.offload import Address, Store, offload
from asyncjob_worker.execution.attempt import Attempt
from asyncjob_worker.settings import OffloadSettings, Settings
from support.parts.callbacks import ignore
from support.parts.worker_parts import Answer, ScriptedSession, attempt_services, held

SECRET = {"secretKeyRef": {"name": "mail", "key": "order"}}
CONFIG_MAP = {"configMapKeyRef": {"name": "mail", "key": "order"}}


def an_app(payload: Any = Any) -> WorkerApp:
    app = WorkerApp()

    async def echo(job: Any, payload: Any) -> Any:
        return payload

    echo.__annotations__["payload"] = payload
    app.handler("echo")(echo)
    return app


async def run(
    source: Any,
    *answers: Answer,
    payload: Any = Any,
    offload: OffloadSettings | None = None,
    stop: Stop | None = None,
) -> PhaseChange:
    session, app = ScriptedSession(get=answers), an_app(payload)
    settings = Settings(concurrency=1, offload=offload or OffloadSettings())
    tools = attempt_services(settings, session.session.get)
    job = held(spec={"payloadFrom": source})
    if stop:
        job.stop(stop)
    try:
        move = await Attempt(job, app.handlers["echo"], app, settings, tools, on_start=ignore).run()
    finally:
        tools.executor.close()
    assert move
    return move


def secret(text: str) -> Any:
    return {"data": {"order": base64.b64encode(text.encode()).decode()}}


def error(move: PhaseChange) -> tuple[str, str]:
    found = move.fields["error"]
    assert isinstance(found, dict)
    return str(found["category"]), str(found["message"])


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


async def attempt(function: Any, *, cut: bool = False, **of: Any) -> PhaseChange:
    """Return what becomes of a job; `cut` is one that could not be read as a whole."""
    app, settings = WorkerApp(), Settings(concurrency=1)
    app.handler("echo")(function)
    tools = attempt_services(settings)
    try:
        job = replace(held(**of), too_deep=cut)
        move = await Attempt(job, app.handlers["echo"], app, settings, tools, on_start=ignore).run()
    finally:
        tools.executor.close()
    assert move
    return move


async def depth(job: Any, payload: Any) -> int:
    levels = 0
    while isinstance(payload, dict):
        payload, levels = payload["a"], levels + 1
    return levels


async def typed(job: Any, payload: list[int]) -> int:
    return 1


async def careless(job: Any) -> str:
    return "done"


@pytest.mark.parametrize("levels", [199, 201, 254, 300, 1000])
async def test_a_payload_of_any_depth_that_is_read_is_given_to_its_handler(levels: int) -> None:
    move = await attempt(depth, spec={"payload": nested(levels)})
    assert (move.target, move.fields["result"]) == (Phase.SUCCEEDED, levels)
    assert (await attempt(careless, spec={"payload": nested(levels)})).target is Phase.SUCCEEDED


@pytest.mark.parametrize("levels", [201, 300])
async def test_a_deep_payload_that_does_not_fit_costs_no_retry(levels: int) -> None:
    move = await attempt(typed, spec={"payload": nested(levels)})
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert "nested deeper than 200 levels" in error(move)[1]
    assert "submit it flatter" in error(move)[1]


async def test_a_job_that_was_not_read_as_a_whole_runs_only_where_nothing_of_it_is_used() -> None:
    assert (await attempt(careless, cut=True)).target is Phase.SUCCEEDED
    for move in (
        await attempt(depth, cut=True),
        await attempt(careless, cut=True, checkpoint={"cut": None}),
        await attempt(careless, cut=True, steps={"a": {"attempt": 1, "result": {"cut": None}}}),
    ):
        assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
        assert error(move)[1] == "the job is nested deeper than 1000 levels; submit it flatter"


async def test_a_secret_holds_json() -> None:
    assert (await run(SECRET, secret('{"number": 7}'))).fields["result"] == {"number": 7}


async def test_a_config_map_holds_json_as_text_or_as_bytes() -> None:
    assert (await run(CONFIG_MAP, {"data": {"order": '["ü"]'}})).fields["result"] == ["ü"]
    as_bytes = {"binaryData": {"order": base64.b64encode(b"[1]").decode()}}
    assert (await run(CONFIG_MAP, as_bytes)).fields["result"] == [1]


async def test_text_is_never_guessed_at() -> None:
    assert (await run(SECRET, secret('"123"'), payload=str)).fields["result"] == "123"
    move = await run(SECRET, secret("123"), payload=str)
    assert move.reason is Reason.INVALID_PAYLOAD


async def test_what_is_not_json_is_a_dead_letter_that_says_where_and_the_way_out() -> None:
    move = await run(CONFIG_MAP, {"data": {"order": "hunter2"}})
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert error(move)[1] == (
        "key 'order' of ConfigMap 'mail' is not JSON at line 1 column 1; "
        "plain text is JSON when it stands in quotes"
    )


async def test_a_missing_object_is_tried_again_and_named() -> None:
    move = await run(SECRET, ObjectNotFoundError(status=404))
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert error(move) == (
        "NotFound",
        "there is no Secret 'mail' in namespace 'ns', from whose key 'order' the payload comes",
    )


@pytest.mark.parametrize("found", [{}, {"data": {"other": "e30="}}, {"data": None}])
async def test_a_missing_key_is_tried_again_and_named(found: Any) -> None:
    move = await run(SECRET, found)
    assert move.target is Phase.RETRYING
    assert error(move) == (
        "NotFound",
        "Secret 'mail' in namespace 'ns' has no key 'order', from which the payload comes",
    )


async def test_without_permission_the_role_is_named() -> None:
    move = await run(CONFIG_MAP, ForbiddenError(status=403))
    assert move.target is Phase.RETRYING
    category, message = error(move)
    assert category == "Permission"
    assert "may not get configmaps 'mail' in namespace 'ns'" in message
    assert "bind the ClusterRole asyncjob-worker-payloads" in message


async def test_an_api_server_that_is_away_is_asked_again() -> None:
    away = UnknownOutcomeError("no answer to GET")
    with capture_logs() as logs:
        move = await run(CONFIG_MAP, away, {"data": {"order": "1"}})
    assert move.fields["result"] == 1
    assert [entry["event"] for entry in logs] == ["the payload could not be read"]


async def test_a_payload_over_the_limit_is_refused_with_its_size() -> None:
    move = await run(SECRET, secret("[1,2,3]"), offload=OffloadSettings(limit=6))
    assert move.reason is Reason.INVALID_PAYLOAD
    assert error(move)[1] == "key 'order' of Secret 'mail' has 7 bytes, the limit is 6"


async def test_a_source_of_a_newer_version_is_said() -> None:
    move = await run({"vaultRef": {"name": "x"}})
    assert error(move)[1] == "this worker does not know spec.payloadFrom.vaultRef"


# ---- what is secret stays secret


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Colour(enum.Enum):
    RED = "red"


class Strict(BaseModel, extra="forbid"):
    number: int
    colour: Colour
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    prices: dict[str, int]

    @field_validator("number", mode="before")
    @classmethod
    def look(cls, value: object) -> object:
        if value == "broken-hunter2":
            raise KeyError(value)
        if isinstance(value, str):
            raise ValueError(f"{value} is no number")  # noqa: TRY004
        return value


HIDDEN = [
    '{"number": "hunter2", "colour": "hunter2", "pet": {"kind": "hunter2"}, "prices": {}}',
    '{"number": 1, "colour": "red", "pet": {"kind": "cat"}, "prices": {"hunter2": "x"}}',
    '{"number": 1, "hunter2": 1}',
    '{"number": "broken-hunter2"}',
    '{"hunter2": 99999999999999999999999}',
    '{"hunter2": NaN}',
    "hunter2",
    '{"hunter2": ',
]


@pytest.mark.parametrize("text", HIDDEN)
async def test_the_content_of_a_secret_is_nowhere(
    text: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with capture_logs() as logs:
        move = await run(SECRET, secret(text), payload=Strict)
    assert move.target in {Phase.DEAD_LETTER, Phase.RETRYING}
    told = [str(move.fields), str(move.history_entry), str(logs), caplog.text, *capsys.readouterr()]
    assert not [words for words in told if "hunter2" in words]


async def test_the_content_of_a_secret_is_checked_before_a_process_of_its_own_sees_it() -> None:
    app = an_app(Strict)
    handler = replace(app.handlers["echo"], isolation=Isolation.PROCESS)
    settings = Settings(concurrency=1)
    tools = attempt_services(
        settings, ScriptedSession(get=[secret('{"number": "hunter2"}')]).session.get
    )
    move = await Attempt(
        held(spec={"payloadFrom": SECRET}), handler, app, settings, tools, on_start=ignore
    ).run()
    assert move
    assert move.reason is Reason.INVALID_PAYLOAD
    assert "hunter2" not in str(move.fields)


async def test_a_secret_that_does_not_fit_is_told_by_field_and_kind_of_error() -> None:
    text = '{"number": "a", "colour": "b", "pet": {"kind": "cat"}, "prices": {"c": "d"}}'
    move = await run(SECRET, secret(text), payload=Strict)
    assert move.reason is Reason.INVALID_PAYLOAD
    assert error(move)[1] == (
        "key 'order' of Secret 'mail' does not fit: "
        "number: value_error; colour: enum; prices.…: int_parsing"
    )


# ---- stores


@pytest.fixture
def store(tmp_path: Path) -> OffloadSettings:
    return OffloadSettings(Address.folder(f"file://{tmp_path}"))


async def test_a_payload_in_the_store_reaches_the_handler(store: OffloadSettings) -> None:
    source = offload({"n": [1, None]}, str(store.url), namespace="ns", store=Store())
    assert (await run({"uri": source.uri}, offload=store)).fields["result"] == {"n": [1, None]}


async def test_a_large_payload_is_parsed_off_the_event_loop_and_arrives_whole() -> None:
    url = f"memory://{uuid.uuid4().hex}"
    value = ["x" * 1000] * 200
    source = offload(value, url, namespace="ns", store=Store())
    move = await run({"uri": source.uri}, offload=OffloadSettings(Address.folder(url)))
    assert move.fields["result"] == value


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "file:///etc/../etc/passwd",
        "simplecache::file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "/etc/passwd",
    ],
)
async def test_an_address_that_is_not_allowed_is_a_dead_letter(
    uri: str, store: OffloadSettings
) -> None:
    move = await run({"uri": uri}, offload=store)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert error(move)[1].startswith("spec.payloadFrom.uri: ")
    assert error(move)[1].endswith("(see --payload-prefix)")


async def test_without_a_store_no_address_is_allowed() -> None:
    move = await run({"uri": "s3://b/k"})
    assert "s3://b/k is not below what may be read: nothing" in error(move)[1]


async def test_another_namespaces_payload_is_not_read(store: OffloadSettings) -> None:
    source = offload(1, str(store.url), namespace="ns2", store=Store())
    move = await run({"uri": source.uri}, offload=store)
    assert move.reason is Reason.INVALID_PAYLOAD


async def test_a_missing_payload_is_tried_again(store: OffloadSettings) -> None:
    move = await run({"uri": f"{store.url}/payloads/ns/none.json"}, offload=store)
    assert move.target is Phase.RETRYING
    assert error(move)[0] == "NotFound"


async def test_a_payload_that_is_not_what_was_written_is_a_dead_letter(
    store: OffloadSettings, tmp_path: Path
) -> None:
    source = offload(1, str(store.url), namespace="ns", store=Store())
    (file,) = (tmp_path / "payloads" / "ns").iterdir()
    file.write_text("2")
    move = await run({"uri": source.uri}, offload=store)
    assert move.reason is Reason.INVALID_PAYLOAD
    assert "sha256 mismatch" in error(move)[1]


async def test_a_payload_in_the_store_over_the_limit_is_a_dead_letter(
    store: OffloadSettings,
) -> None:
    source = offload("xxx", str(store.url), namespace="ns", store=Store())
    move = await run({"uri": source.uri}, offload=OffloadSettings(store.url, limit=4))
    assert move.reason is Reason.INVALID_PAYLOAD
    assert "has 5 bytes, the limit is 4" in error(move)[1]


async def test_a_job_cancelled_before_its_payload_is_read_is_cancelled() -> None:
    move = await run(SECRET, secret("1"), stop=Stop.CANCELLED)
    assert move.target is Phase.CANCELLED
