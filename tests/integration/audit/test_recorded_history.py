"""A history that a real API server has written: no false alarm, and every rule can be broken."""

import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from asyncjob.audit.catalog import AUDIT_RULES, AuditRule
from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.history_file import read_history
from asyncjob.audit.recorder import RECORDED
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.names import JOBS
from asyncjob_dev.controlplane import ControlPlane
from support.driven.audit_story import Recorder, Recording, last_versions
from support.driven.jobs import until
from support.objects import history_mutations
from support.objects.array_histories import mutations as array_history_mutations
from support.objects.history_mutations import Evidence, Mutation
from support.parts.cli_shell import Shell
from support.processes.workers import worker_namespace

MUTATIONS = [*history_mutations.MUTATIONS, *array_history_mutations.MUTATIONS]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def evidence(recording: Recording) -> Evidence:
    handlers = [
        orjson.loads(line)
        for file in recording.handler_records
        for line in file.read_bytes().splitlines()
    ]
    logged = [orjson.loads(line) for line in recording.audit_log.read_bytes().splitlines()]
    return Evidence([*map(dict, read_history(str(recording.history)))], logged, handlers)


def judged(evidence: Evidence) -> HistoryReport:
    log, handlers = AuditLog(), HandlerRecord()
    for event in evidence.audit_log:
        log.add(event)
    for line in evidence.handlers:
        handlers.add(line)
    options = CheckOptions(floors=RetentionFloors(min_age=0))
    return HistoryChecker(options, log, handlers).check(evidence.history)


def test_lost_answers_takeovers_and_leader_changes_give_no_false_alarm(
    recording: Recording,
) -> None:
    done = Shell()("audit", "check", str(recording.history), *recording.evidence, "-o", "json")
    report: Any = json.loads(done.stdout)
    assert (done.exit_code, report["items"], report["complete"]) == (0, [], True), done.output
    happened = report["attempts"]
    assert report["arrays"] == 4
    assert happened["Claimed"] > happened["Succeeded"] > 20
    for reason in ("RetryRequested", "LeaseExpired", "WorkerCrashed", "InvalidPayload"):
        assert happened[reason], reason


@pytest.mark.parametrize(
    ("rule", "mutation"), MUTATIONS, ids=[mutation.__name__ for _, mutation in MUTATIONS]
)
def test_a_recorded_history_that_is_broken_is_found_and_its_rule_named(
    evidence: Evidence, rule: AuditRule, mutation: Mutation
) -> None:
    broken = evidence.copy()
    mutation(broken)
    assert judged(broken).counts[rule.id]


def test_each_rule_has_a_mutation() -> None:
    assert {rule for rule, _ in MUTATIONS} == set(AUDIT_RULES)


def test_no_payload_is_in_a_history_unless_it_is_asked_for(
    plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(plane, tmp_path) as ns:
        plain, whole = tmp_path / "plain.jsonl", tmp_path / "whole.jsonl"
        with Recorder(ns, plain) as one, Recorder(ns, whole, "--payloads") as other:
            ns.create("secret", "echo", {"password": "hunter2"})
            for file in (plain, whole):
                until(partial(has, file, b'"secret"'), 20, "the version")
            assert [one.stop(), other.stop(signal.SIGINT)] == [0, 0]
        assert b"hunter2" not in plain.read_bytes()
        assert b"hunter2" in whole.read_bytes()
        for file in (plain, whole):
            assert oct(file.stat().st_mode & 0o777) == "0o600"
            assert Shell()("audit", "check", str(file), "--strict").exit_code == ExitCode.OK


def test_a_recorder_that_was_killed_is_gone_on_with_and_the_gap_is_known(
    plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(plane, tmp_path) as ns:
        file = tmp_path / "history.jsonl.gz"
        with Recorder(ns, file) as killed:
            ns.create("before", "echo")
            until(lambda: list(last_versions(file)) == ["before"], 20, "the version")
            killed.stop(signal.SIGKILL)
        ns.create("between", "echo")
        with Recorder(ns, file, "--append") as recorder:
            ns.create("after", "echo")
            until(lambda: "after" in last_versions(file), 20, "the version")
            assert recorder.stop() == 0
        shell = Shell()
        report: Any = json.loads(shell.ok("audit", "check", str(file), "-o", "json"))
        gaps = {gap["resource"]: gap for gap in report["gaps"]}
        assert (report["jobs"], len(report["gaps"]), set(gaps)) == (3, 4, set(RECORDED))
        assert gaps[JOBS]["newJobs"] == 1
        assert shell("audit", "check", str(file), "--strict").exit_code == ExitCode.FAILED


def has(file: Path, text: bytes) -> bool:
    return text in file.read_bytes()


def test_who_may_not_list_is_told_at_once(plane: ControlPlane, tmp_path: Path) -> None:
    with worker_namespace(plane, tmp_path) as ns:
        nobody = ns.identity("nobody")
        done = Shell()(
            "audit", "record", str(tmp_path / "h"), "-A", f"--kubeconfig={nobody.kubeconfig}"
        )
        assert done.exit_code == ExitCode.NOT_ALLOWED
        assert "cannot list" in done.stderr
        assert not (tmp_path / "h").exists()
