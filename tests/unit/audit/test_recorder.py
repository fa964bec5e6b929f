"""What is recorded of lists and watches, and where a gap is marked."""

import asyncio
import gzip
import io
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.history_file import (
    DIGESTS,
    WHOLE,
    HistoryFileError,
    HistoryLine,
    HistoryWriter,
    NotAHistoryError,
    RecordingScope,
    open_for_recording,
    read_history,
)
from asyncjob.audit.recorded_object import digest_of_recorded, recorded_object, value_digest
from asyncjob.audit.recorder import HistoryRecorder
from asyncjob.kube import KubeSession, pacing
from support.loopback.kube_answers import Server, error, ok, stream
from support.parts.callbacks import ignore

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
Line = dict[str, Any]
SCOPE = RecordingScope("tests", DIGESTS)
START: Line = {"format": 1, "namespace": "tests", "contents": "digests"}


def listed(version: str, *items: Line) -> Any:
    return ok({"metadata": {"resourceVersion": version}, "items": list(items)})


def a_job(name: str, version: str, **status: Any) -> Line:
    meta = {"name": name, "namespace": "tests", "uid": name, "resourceVersion": version}
    return {"metadata": meta, "spec": {"type": "echo"}, "status": {"phase": "Queued", **status}}


JOB: Line = a_job("one", "4")


def changed(event: str, obj: Line) -> Line:
    return {"type": event, "object": obj}


async def waiting(request: web.Request) -> web.StreamResponse:
    """Answer a watch in which nothing happens."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.sleep(60)
    return response


async def recorded(
    session: KubeSession,
    file: Path,
    until: Callable[[list[Line]], bool],
    *,
    whole: bool = False,
    append: bool = False,
) -> list[Line]:
    """Record until the file has what is waited for, and return its lines."""
    stopped = asyncio.Event()
    scope = RecordingScope("tests", WHOLE if whole else DIGESTS)
    with open_for_recording(str(file), append=append, scope=scope) as writer:
        recorder = HistoryRecorder(session, writer, scope, lambda: NOW)
        running = asyncio.ensure_future(recorder.run(stopped, "0", ignore))

        async def look() -> None:
            while True:
                writer.flush()
                if until(lines(file)):
                    return
                await asyncio.sleep(0.01)

        async with asyncio.timeout(30):
            await look()
        stopped.set()
        await running
    return lines(file)


def lines(file: Path) -> list[Line]:
    return [dict(line) for line in read_history(str(file))] if file.stat().st_size else []


def names(found: list[Line]) -> list[tuple[str, str]]:
    return [
        (one["event"], one["object"]["metadata"]["name"])
        for one in found
        if one["line"] == "version" and one["resource"] == "asyncjobs"
    ]


def quiet(servers: dict[str, Server]) -> None:
    for server in servers.values():
        server.answers = [listed("5"), waiting]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between two watches."""
    monkeypatch.setattr(pacing.RoundPacer, "next_delay", lambda *_, **__: 0.01)


async def test_what_is_there_and_each_change_is_recorded_with_its_times(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    quiet(servers)
    old = a_job("old", "3")
    old["metadata"]["managedFields"] = [
        {"subresource": "status", "time": "2026-11-23T11:00:00Z"},
        {"time": "2026-11-23T11:30:00Z"},
    ]
    changes = [changed("ADDED", a_job("new", "6")), changed("DELETED", a_job("old", "7"))]
    servers["asyncjobs"].answers = [listed("5", old), stream(*changes), waiting]
    found = await recorded(session, tmp_path / "h", lambda seen: len(names(seen)) == 3)
    assert names(found) == [("LISTED", "old"), ("ADDED", "new"), ("DELETED", "old")]
    first = next(one for one in found if one.get("event") == "LISTED")
    assert (first["time"], first["written"]) == ("2026-11-23T12:00:00.000Z", "2026-11-23T11:00:00Z")
    assert "managedFields" not in first["object"]["metadata"]
    assert found[0]["line"] == "start"
    assert found[-1] == {
        "line": "end",
        "time": "2026-11-23T12:00:00.000Z",
        "versions": 3,
        "gaps": 0,
    }
    assert stat.S_IMODE((tmp_path / "h").stat().st_mode) == 0o600


async def test_a_lost_connection_is_no_gap_and_nothing_is_missing(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    quiet(servers)
    cut = stream(changed("ADDED", a_job("one", "6")), broken=True)
    failures = [error(503)] * 20
    after = stream(changed("ADDED", a_job("two", "7")))
    servers["asyncjobs"].answers = [listed("5"), cut, *failures, after, waiting]
    found = await recorded(session, tmp_path / "h", lambda seen: len(names(seen)) == 2)
    assert names(found) == [("ADDED", "one"), ("ADDED", "two")]
    assert found[-1]["gaps"] == 0
    watched = [one.query.get("resourceVersion") for one in servers["asyncjobs"].requests[1:]]
    assert set(watched[1:22]) == {"6"}


async def test_a_version_that_is_gone_is_a_gap_and_a_list(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    quiet(servers)
    error_object = {"code": 410, "reason": "Expired", "message": "too old"}
    gone: Line = {"type": "ERROR", "object": error_object}
    servers["asyncjobs"].answers = [
        listed("5", a_job("one", "4")),
        stream(gone),
        listed("9", a_job("one", "8")),
        waiting,
    ]
    found = await recorded(session, tmp_path / "h", lambda seen: len(names(seen)) == 2)
    lists = [one for one in found if one["line"] == "list" and one["resource"] == "asyncjobs"]
    assert [one["gap"] for one in lists] == [False, True]
    assert found[-1]["gaps"] == 1


async def test_a_recording_that_ends_while_the_api_server_is_away_says_since_when(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    quiet(servers)
    cut = stream(changed("ADDED", a_job("one", "6")), broken=True)
    servers["asyncjobs"].answers = [listed("5"), cut, *[error(503)] * 1000]
    found = await recorded(
        session, tmp_path / "h", lambda _: len(servers["asyncjobs"].requests) > 5
    )
    assert found[-1]["behind"] == {"asyncjobs": "2026-11-23T12:00:00.000Z"}
    assert found[-1]["gaps"] == 1
    [gap] = HistoryChecker(CheckOptions()).check(found).gaps
    assert (gap.resource, gap.since) == ("asyncjobs", NOW.timestamp())


async def test_a_recording_that_ends_within_a_new_list_says_since_when(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    quiet(servers)
    gone: Line = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "old"}}
    first = ok({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [JOB]})
    servers["asyncjobs"].answers = [listed("5", JOB), stream(gone), first, waiting]
    found = await recorded(session, tmp_path / "h", lambda seen: len(names(seen)) == 2)
    assert [one["line"] for one in found].count("listEnd") == 4
    assert set(found[-1]["behind"]) == {"asyncjobs"}


async def test_what_cannot_be_written_ends_the_recording(
    session: KubeSession, servers: dict[str, Server]
) -> None:
    quiet(servers)
    with pytest.raises(HistoryFileError, match="No space left"):
        await recorded(session, Path("/dev/full"), lambda _: False, append=True)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_is_gone_on_with_after_a_line_was_cut_off(tmp_path: Path, suffix: str) -> None:
    file = str(tmp_path / f"h{suffix}")
    for part in range(3):
        with open_for_recording(file, append=part > 0, scope=SCOPE) as writer:
            writer.write(HistoryLine.START, {"part": part, **START}, "t")
            writer.flush()
            writer.write(HistoryLine.LIST, {"resource": "x" * 100}, "t")
        os.truncate(file, Path(file).stat().st_size - 20)
    assert [one.get("part") for one in read_history(file) if one["line"] == "start"] == [0, 1, 2]


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "h"
    file.write_text("precious")
    with (
        pytest.raises(HistoryFileError, match="--append"),
        open_for_recording(str(file), append=False, scope=SCOPE),
    ):
        pass
    assert file.read_text() == "precious"


def a_recording(file: Path) -> bytes:
    with open_for_recording(str(file), append=False, scope=SCOPE) as writer:
        writer.write(HistoryLine.START, START, "t")
    return file.read_bytes()


@pytest.mark.parametrize(
    "other", [RecordingScope("tests", WHOLE), RecordingScope("*", DIGESTS)], ids=str
)
def test_a_recording_of_another_scope_is_not_gone_on_with(
    tmp_path: Path, other: RecordingScope
) -> None:
    file = tmp_path / "h"
    content = a_recording(file)
    with (
        pytest.raises(NotAHistoryError, match="namespace tests without payloads"),
        open_for_recording(str(file), append=True, scope=other),
    ):
        pass
    assert file.read_bytes() == content


@pytest.mark.parametrize("content", [b"precious\n", gzip.compress(b"precious\n", mtime=0)])
@pytest.mark.parametrize("name", ["h", "h.gz"])
def test_what_is_no_history_is_not_touched_by_append(
    tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with (
        pytest.raises(NotAHistoryError),
        open_for_recording(str(file), append=True, scope=SCOPE),
    ):
        pass
    assert file.read_bytes() == content


def test_a_packed_history_that_was_renamed_stays_packed(tmp_path: Path) -> None:
    a_recording(tmp_path / "h.gz")
    file = (tmp_path / "h.gz").rename(tmp_path / "h")
    with open_for_recording(str(file), append=True, scope=SCOPE) as writer:
        writer.write(HistoryLine.END, {}, "t")
    assert [one["line"] for one in read_history(str(file))] == ["start", "end"]


def test_a_recording_that_failed_before_it_began_leaves_no_file(tmp_path: Path) -> None:
    with (
        suppress(ConnectionError),
        open_for_recording(str(tmp_path / "h"), append=False, scope=SCOPE),
    ):
        raise ConnectionError
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b'{"line": "version"}\n', "not a history"),
        (b"hello\n", "not a history"),
        (b'{"line": "start", "format": 2, "version": "9.9"}\n', "newer version"),
        (b'{"line": "start"}\nbroken\n{"line": "list"}\n', ":2: not a line"),
    ],
)
def test_what_is_no_history_is_refused_in_words(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "h"
    file.write_bytes(content)
    with pytest.raises(NotAHistoryError, match=message):
        list(read_history(str(file)))


def test_digests_stand_in_the_place_of_what_may_be_secret_or_large() -> None:
    job = a_job("one", "1", checkpoint={"row": 1.0}, result="r" * 1000)
    job["spec"]["payload"] = {"password": "hunter2"}
    text = orjson.dumps(recorded_object(job, "asyncjobs", whole=False))
    assert b"hunter2" not in text
    assert b"rrr" not in text
    kept: Any = recorded_object(job, "asyncjobs", whole=False)
    assert digest_of_recorded(kept["status"]["checkpoint"]) == value_digest({"row": 1})
    whole: Any = recorded_object(job, "asyncjobs", whole=True)
    assert whole["spec"]["payload"] == {"password": "hunter2"}
    assert digest_of_recorded(whole["status"]["checkpoint"]) == value_digest({"row": 1})
    template = {"metadata": {}, "spec": {"jobTemplate": {"spec": {"payload": "hunter2"}}}}
    assert b"hunter2" not in orjson.dumps(recorded_object(template, "asynccronjobs", whole=True))


def test_a_digest_stands_in_the_place_of_each_step_s_result() -> None:
    steps = {"charge": {"attempt": 1, "result": {"card": "hunter2"}}, "ship": {"attempt": 2}}
    job = a_job("one", "1", steps=steps)
    kept: Any = recorded_object(job, "asyncjobs", whole=False)["status"]
    assert b"hunter2" not in orjson.dumps(kept)
    charge = kept["steps"]["charge"]
    assert digest_of_recorded(charge.pop("result")) == value_digest({"card": "hunter2"})
    assert kept["steps"] == {"charge": {"attempt": 1}, "ship": {"attempt": 2}}
    whole: Any = recorded_object(job, "asyncjobs", whole=True)
    assert whole["status"]["steps"] == steps
    assert job["status"]["steps"]["charge"]["result"] == {"card": "hunter2"}


def test_a_digest_stands_in_the_place_of_each_signal_s_payload() -> None:
    about = {"sentBy": "ada", "sentAt": "2026-11-23T11:00:00.000Z"}
    job = a_job("one", "1")
    job["spec"]["signals"] = {"approval": {**about, "payload": {"pin": "hunter2"}}, "go": about}
    kept: Any = recorded_object(job, "asyncjobs", whole=False)["spec"]
    assert b"hunter2" not in orjson.dumps(kept)
    digested = kept["signals"]["approval"].pop("payload")
    assert digest_of_recorded(digested) == value_digest({"pin": "hunter2"})
    assert kept["signals"] == {"approval": about, "go": about}
    whole: Any = recorded_object(job, "asyncjobs", whole=True)
    assert whole["spec"]["signals"] == job["spec"]["signals"]
    assert job["spec"]["signals"]["approval"]["payload"] == {"pin": "hunter2"}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def a_deep_job(levels: int) -> Line:
    deep = nested(levels)
    job = a_job("deep", "1", checkpoint=deep, result=deep, steps={"a": {"result": deep}})
    job["spec"] |= {"payload": deep, "request": deep, "signals": {"go": {"payload": deep}}}
    return job


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("levels", [199, 200, 201, 249, 250, 251, 900])
def test_what_is_nested_too_deeply_is_recorded_all_the_same(levels: int, *, whole: bool) -> None:
    file = io.BytesIO()
    kept = recorded_object(a_deep_job(levels), "asyncjobs", whole=whole)
    version: Line = {"resource": "asyncjobs", "event": "ADDED", "object": kept}
    writer = HistoryWriter(file)
    writer.write(HistoryLine.VERSION, version, "t")
    writer.flush()
    told = json.loads(file.getvalue())["object"]["spec"]["signals"]["go"]["payload"]
    assert (told == nested(levels)) is (whole and levels <= 200)
