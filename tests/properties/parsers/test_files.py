"""Files that people give to the command line: read, or refused in words that name the place."""

import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.history_file import HistoryFileError, json_lines, parse_line, read_history
from asyncjob.cli.backup.export_file import BrokenExportError
from asyncjob.cli.backup.reader import read_export, read_object
from asyncjob.cli.commands.audit.report import report_json, report_lines, uncertainties
from asyncjob.cli.input.documents import DocumentError, job_documents, parse_documents
from asyncjob.cli.input.yaml_loader import load_documents
from asyncjob.free_json import FreeJsonError, parse
from support.objects.fuzz import fuzzed, mutated, mutated_object
from support.objects.histories import HistoryBuilder

MANIFEST = b"""\
# a comment
apiVersion: asyncjob.dev/v1alpha1
kind: AsyncJob
metadata: {name: a, labels: {team: &t mail, tier: *t}}
spec:
  type: mail
  payload:
    when: {count: 0x1f, day: 2026-11-23, on: yes}
    text: |
      two
      lines
---
- {type: mail, <<: {queue: other}}
- !!str 1: "\\u00e9"
"""
YAML = [MANIFEST, b"a: 1\nb: [1, 2.5, ~]\n? c\n: d\n", b'"x": !!float 1e3\n1: 1:30\n']
JSON = [
    b'{"type": "mail", "payload": {"a": [1, 2.5, null, true, "\\u00e9"]}}',
    b'[{"type": "a"}]',
    b'{"kind":"List","items":[{"apiVersion":"asyncjob.dev/v1alpha1","kind":"AsyncJob","spec":{"type":"a"}}]}',
]
LINES = [b'{"type": "a"}\n{"type": "b"}\n', b'\n{"a": 1}\r\n["b"]\n']


@fuzzed
@given(mutated(YAML))
def test_yaml_is_read_or_refused(data: bytes) -> None:
    try:
        for value in load_documents(data.decode(errors="replace")):
            json.dumps(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return


@fuzzed
@given(mutated([*YAML, *JSON, *LINES]), st.sampled_from(["", ".json", ".jsonl", ".yaml"]))
@example(b"? !!int ''\n: 1\n", ".yaml")
@example(b"!!bool x: 1\n", ".yaml")
@example(b'{"kind": [1]}', ".json")
def test_a_file_of_jobs_is_read_or_refused_with_its_name(data: bytes, suffix: str) -> None:
    try:
        for document in parse_documents("FILE", data.decode(errors="replace"), suffix):
            for job in job_documents(document, "ns"):
                assert job.location.startswith("FILE")
    except DocumentError as error:
        assert str(error).startswith("FILE")  # noqa: PT017


@fuzzed
@given(mutated(JSON), st.booleans(), st.sampled_from([None, 20, 250_000]))
def test_a_body_is_read_exactly_or_refused(data: bytes, unique: bool, most: int | None) -> None:
    try:
        value = parse(data, what="body", max_values=most, unique_keys=unique)
    except FreeJsonError as error:
        assert str(error).startswith("body")  # noqa: PT017
        return
    assert value == json.loads(data)


def good_history() -> list[dict[str, Any]]:
    history = HistoryBuilder()
    history.queue(maxConcurrency=2)
    for name in ("a", "b", "c"):
        history.create(name, payload={"a": 1}, idempotencyKey=name)
        history.claim(name)
        history.renew(name, checkpoint={"at": 1})
    history.succeed("a")
    history.fail("b")
    history.promote("b")
    history.expire("c")
    history.schedule("nightly")
    history.run_of("nightly", 1)
    history.relist()
    history.delete("a")
    return history.end()


HISTORY = good_history()
PLAIN = b"".join(json.dumps(line).encode() + b"\n" for line in HISTORY)


def audit_event(verb: str, subresource: str = "") -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": "u", "extra": {"a": ["b"]}},
        "objectRef": {
            "resource": "asyncjobs",
            "apiGroup": "asyncjob.dev",
            "namespace": "tests",
            "name": "a",
            "subresource": subresource,
        },
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-11-23T12:00:00Z",
        "requestURI": "/apis",
        "responseObject": {"metadata": {"name": "a", "resourceVersion": "105"}},
    }


EVENTS = [
    audit_event("create"),
    audit_event("patch", "status"),
    audit_event("delete"),
    audit_event("deletecollection"),
]
RECORD = [
    {
        "event": event,
        "time": "2026-11-23T12:00:00Z",
        "uid": "u",
        "attempt": 1,
        "claim": "c",
        "worker": "w",
        "namespace": "tests",
        "name": "a",
        "digest": "d",
    }
    for event in ("started", "checkpoint", "ended")
]


def check(
    lines: Iterator[Any], log: AuditLog | None = None, record: HandlerRecord | None = None
) -> None:
    report = HistoryChecker(CheckOptions(), log, record).check(lines)
    json.dumps(report_json(report))
    assert list(report_lines(report, colour=False))
    list(uncertainties(report))


@fuzzed
@given(
    data=mutated(
        [PLAIN, gzip.compress(PLAIN)],
        [*(json.dumps(line).encode() for line in HISTORY), b"\n", b"9" * 5000],
    )
)
def test_a_damaged_history_is_judged_or_refused(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "history"
    file.write_bytes(data)
    try:
        check(read_history(str(file)))
    except HistoryFileError as error:
        assert str(file) in str(error)  # noqa: PT017


@fuzzed
@given(st.data())
def test_a_history_with_other_values_is_judged(data: st.DataObject) -> None:
    lines = [*HISTORY]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(1, len(lines) - 1))
        line = data.draw(mutated_object([lines[at]]))
        lines[at] = line if isinstance(line, dict) else {}
    sent = (parse_line(json.dumps(line).encode()) for line in lines)
    try:
        check(line for line in sent if line is not None)
    except HistoryFileError:
        return


@fuzzed
@given(st.lists(mutated_object(EVENTS), max_size=5), st.lists(mutated_object(RECORD), max_size=5))
def test_evidence_of_others_is_taken_as_far_as_it_says_something(
    events: list[Any], record: list[Any]
) -> None:
    log, handlers = AuditLog(), HandlerRecord()
    for take, lines in ((log.add, events), (handlers.add, record)):
        taking: Callable[[Any], None] = take
        for line in lines:
            if (sent := parse_line(json.dumps(line).encode())) is not None:
                taking(sent)
    check(iter(HISTORY), log, handlers)


@fuzzed
@given(mutated([PLAIN, gzip.compress(PLAIN)]))
def test_lines_come_out_of_any_bytes(data: bytes) -> None:
    stream = BufferedReader(BytesIO(data))
    with contextlib.suppress(OSError):  # a checksum that is wrong, as a disk that cannot be read
        assert sum(map(len, json_lines(stream))) <= max(len(data), len(PLAIN))


JOB = {
    "apiVersion": "asyncjob.dev/v1alpha1",
    "kind": "AsyncJob",
    "metadata": {"name": "a", "namespace": "ns", "uid": "u"},
    "spec": {"type": "mail"},
    "status": {"phase": "Queued"},
}
EXPORT = [
    {"kind": "AsyncJobExport", "format": 1, "version": "1", "time": "t", "namespace": "ns"},
    JOB,
    {"kind": "AsyncJobExportEnd", "counts": {"AsyncJob": 1}},
]
EXPORTED = b"".join(json.dumps(line).encode() + b"\n" for line in EXPORT)


def read_all(data: bytes, *, partial: bool) -> None:
    try:
        found = read_export(BytesIO(data), "FILE", partial=partial)
    except BrokenExportError as error:
        assert str(error).startswith("FILE")  # noqa: PT017
        return
    for record in found.records:
        assert read_object(BytesIO(data), record)


@fuzzed
@given(mutated([EXPORTED]), st.booleans())
def test_an_export_is_read_or_refused_with_the_line(data: bytes, partial: bool) -> None:
    read_all(data, partial=partial)


@fuzzed
@given(st.tuples(*(mutated_object([line]) for line in EXPORT)), st.booleans())
def test_an_export_with_other_values_is_read_or_refused(
    lines: tuple[Any, ...], partial: bool
) -> None:
    read_all(b"".join(json.dumps(line).encode() + b"\n" for line in lines), partial=partial)


def test_the_files_of_these_tests_are_good_ones() -> None:
    read_all(EXPORTED, partial=False)
    assert read_export(BytesIO(EXPORTED), "FILE", partial=False).records
    assert HistoryChecker(CheckOptions()).check(iter(HISTORY)).jobs == 4
    assert len(list(load_documents(MANIFEST.decode()))) == 2
