"""What the pages on the audit show and list is what the program prints and writes."""

import asyncio
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import orjson
import pytest

from asyncjob.audit.catalog import AUDIT_RULES
from asyncjob.audit.history_file import (
    DIGESTS,
    HistoryLine,
    RecordingScope,
    open_for_recording,
    read_history,
)
from asyncjob.audit.recorder import HistoryRecorder
from asyncjob.cli.commands.audit.group import audit
from asyncjob.kube import KubeSession
from asyncjob_worker.cli import main as worker
from asyncjob_worker.execution.handler_record import HandlerRecorder
from support.docs.console import commands
from support.loopback.kube_answers import Server, ok, stream
from support.objects.histories import HistoryBuilder, Line
from support.parts.cli_shell import Shell
from support.parts.worker_parts import held

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "how-to" / "audit-jobs.md"
REFERENCE = DOCS / "reference" / "audit.md"
ROW = re.compile(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def a_takeover_of_a_live_lease(history: HistoryBuilder) -> list[Line]:
    history.create("report-7")
    history.claim("report-7", "worker-3")
    history.clock = 12.416
    history.expire("report-7")
    return history.end()


def a_recorder_that_was_away(history: HistoryBuilder) -> list[Line]:
    history.create("changed")
    history.create("gone")
    kept = len(history.lines)
    history.claim("changed")
    del history.objects["gone"]
    history.create("new")
    history.create("newer")
    del history.lines[kept:]
    history.clock = 300
    history.relist()
    return history.lines


@pytest.mark.parametrize(
    ("file", "story"),
    [
        ("history.jsonl.gz", a_takeover_of_a_live_lease),
        ("night.jsonl.gz", a_recorder_that_was_away),
    ],
)
def test_what_the_page_prints_is_printed(
    tmp_path: Path, file: str, story: Callable[[HistoryBuilder], list[Line]]
) -> None:
    lines = b"\n".join(map(orjson.dumps, story(HistoryBuilder())))
    (tmp_path / "h").write_bytes(lines.replace(b'"tests"', b'"shop"'))
    result = Shell()("audit", "check", str(tmp_path / "h"))
    shown = re.search(rf"\$ asyncjob audit check {file}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown
    assert sorted(shown[1].splitlines()) == sorted([*result.output.splitlines()])


def test_each_command_of_the_page_is_understood() -> None:
    found = [shlex.split(line) for line in commands(PAGE)]
    assert len(found) > 4
    for program, *words in found:
        command: click.Command = worker if program == "asyncjob-worker" else audit
        if program == "asyncjob":
            assert words.pop(0) == "audit"
        while isinstance(command, click.Group):
            context = click.Context(command)
            known = command.get_command(context, words.pop(0))
            assert known
            command = known
        command.make_parser(click.Context(command)).parse_args(words)


def test_options_that_the_page_names_exist() -> None:
    text = "".join(part for part in PAGE.read_text().split("```")[::2])
    named = set(re.findall(r"`(--[a-z-]+)", text))
    known = {
        option
        for command in [*audit.commands.values(), *worker.commands.values()]
        for parameter in command.params
        for option in parameter.opts
    }
    assert {"--append", "--payloads", "--strict", "--handler-record"} < named
    assert named <= known


def test_each_rule_has_the_anchor_that_violations_name() -> None:
    page = "docs/reference/errors/rules-of-the-audit.md"
    anchors = re.findall(r'^<a id="(.+)"></a>$', (DOCS.parent / page).read_text(), re.MULTILINE)
    assert [rule.documented for rule in AUDIT_RULES] == [f"{page}#{one}" for one in anchors]


async def test_each_line_of_a_history_is_documented_with_its_fields(
    session: KubeSession, servers: dict[str, Server], tmp_path: Path
) -> None:
    meta: Line = {"name": "job", "namespace": "tests", "uid": "u", "resourceVersion": "4"}
    meta |= {"managedFields": [{"subresource": "status", "time": "2026-11-23T11:00:00Z"}]}
    page: Line = {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": meta}]}
    for server in servers.values():
        server.answers = [ok(page), stream()]
    scope, stopped = RecordingScope("tests", DIGESTS), asyncio.Event()
    file = str(tmp_path / "h")
    with open_for_recording(file, append=False, scope=scope) as writer:
        recorder = HistoryRecorder(session, writer, scope, lambda: datetime.now(UTC))
        await recorder.run(stopped, "0", stopped.set)
    documented = {
        kind: set(CODE.findall(fields)) for kind, fields in ROW.findall(REFERENCE.read_text())
    }
    del documented["line"]  # the head of the table
    written = list(read_history(file))
    assert set(documented) == {kind.value for kind in HistoryLine}
    assert {line["line"] for line in written} == set(documented)
    for line in written:
        assert set(line) - {"line", "time"} <= documented[str(line["line"])]


async def test_each_line_of_a_handler_record_is_documented(tmp_path: Path) -> None:
    record = HandlerRecorder(str(tmp_path / "record"))
    job = held()
    record.report_sink(job).checkpoint({"row": 1})
    record.abandoned(job)
    text = REFERENCE.read_text()
    section = text[text.index("## The handler record") : text.index("## What is not judged")]
    documented = set(CODE.findall(section))
    for raw in (tmp_path / "record").read_bytes().splitlines():
        line = orjson.loads(raw)
        assert {*line, line["event"]} <= documented
