"""`audit check` as people and programs see it, and what `audit record` refuses."""

import gzip
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from support.loopback.kubeconfigs import plain_kubeconfig
from support.objects.histories import HistoryBuilder, Line
from support.parts.cli_shell import Shell


@pytest.fixture
def history() -> HistoryBuilder:
    made = HistoryBuilder()
    made.create("job")
    made.claim("job")
    return made


def written(lines: list[Line], folder: Path) -> str:
    file = folder / "history.jsonl"
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return str(file)


def test_a_good_history_is_said_to_be_good(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    history.succeed("job")
    result = shell("audit", "check", written(history.end(), tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "3 versions of 1 job of namespace tests, 2026-11-23T12:00:00.000Z to "
        "2026-11-23T12:02:00.000Z",
        "no violation",
    ]


def test_a_violation_names_job_versions_times_rule_and_what_explains_it(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    history.clock += 12
    history.expire("job")
    file = written(history.end(), tmp_path)
    result = shell("audit", "check", file)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "lease.takeover   asyncjobs tests/job   taken from worker-0/1 12 s after its last "
        "renewal; the lease lasts 60 s",
        "    version 102 → 103; 2026-11-23T12:00:00.000Z → 2026-11-23T12:00:12.000Z; "
        "asyncjob explain lease.takeover",
    ]
    assert result.stdout.splitlines()[-1] == "1 violation of 1 rule"
    assert shell("audit", "check", file, "--clock-tolerance", "60").exit_code == 0


def test_programs_get_all_that_is_known(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    history.clock += 12
    history.expire("job")
    result = shell("audit", "check", written(history.end(), tmp_path), "-o", "json")
    report: Any = json.loads(result.stdout)
    assert result.exit_code == 1
    (item,) = report.pop("items")
    assert report == {
        "namespace": "tests",
        "from": "2026-11-23T12:00:00.000Z",
        "to": "2026-11-23T12:02:12.000Z",
        "versions": 3,
        "jobs": 1,
        "arrays": 0,
        "attempts": {"Claimed": 1, "LeaseExpired": 1},
        "gaps": [],
        "complete": True,
        "violations": {"lease.takeover": 1},
        "unjudged": {},
    }
    assert item["rule"] == "lease.takeover"
    assert item["documented"] == "docs/reference/errors/rules-of-the-audit.md#lease.takeover"
    assert (item["resource"], item["namespace"], item["name"]) == ("asyncjobs", "tests", "job")
    assert item["resourceVersions"] == ["102", "103"]
    assert item["times"] == ["2026-11-23T12:00:00.000Z", "2026-11-23T12:00:12.000Z"]
    assert item["uid"]
    assert item["demands"]


def test_what_could_not_be_judged_is_said_and_fails_only_where_that_is_asked_for(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    history.clock = 5
    history.relist()
    history.delete("job")
    file = written(history.lines, tmp_path)
    result = shell("audit", "check", file)
    assert result.exit_code == 0
    gap, cut, deletions = result.stderr.splitlines()
    assert gap == (
        "gap in asyncjobs, 2026-11-23T12:00:00.000Z to 2026-11-23T12:00:05.000Z: versions may be "
        "missing; 0 jobs changed in it and 0 came, judged only by what grows or stays; 0 gone, the "
        "end not seen"
    )
    assert "cut off" in cut
    assert deletions.startswith("job.kept: 1 deletion not judged; --audit-log")
    assert shell("audit", "check", file, "--strict").exit_code == 1
    assert shell("audit", "check", file, "--no-manual-deletions").exit_code == 1


def test_programs_get_each_gap(shell: Shell, history: HistoryBuilder, tmp_path: Path) -> None:
    for _ in range(15):
        history.clock += 5
        history.relist()
    file = written(history.end(), tmp_path)
    result = shell("audit", "check", file, "-o", "json")
    gaps: Any = json.loads(result.stdout)["gaps"]
    assert len(gaps) == 15
    assert gaps[-1] == {
        "resource": "asyncjobs",
        "from": "2026-11-23T12:01:10.000Z",
        "to": "2026-11-23T12:01:15.000Z",
        "changedJobs": 0,
        "newJobs": 0,
        "goneJobs": 0,
    }
    assert result.stderr.splitlines()[-1] == "5 more gaps; -o json shows each"


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_was_cut_off_is_judged_as_far_as_it_goes_and_says_so(
    shell: Shell, history: HistoryBuilder, tmp_path: Path, packed: bool
) -> None:
    history.clock += 12
    history.expire("job")
    whole = Path(written(history.end(), tmp_path)).read_bytes()
    end = whole.rindex(b"\n", 0, -1) + 1
    cut = gzip.compress(whole[:end]) + gzip.compress(whole[end:])[:-20]
    content = cut if packed else whole[:-40]
    file = tmp_path / "cut"
    file.write_bytes(content)
    result = shell("audit", "check", str(file))
    assert result.exit_code == 1
    assert result.stdout.startswith("lease.takeover")
    assert result.stderr.startswith("the recording was cut off")


def test_a_handler_that_may_have_been_frozen_is_said_and_no_violation(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    history.clock = 70
    history.expire("job")
    history.claim("job")
    times = (("started", 1, "12:00:01"), ("started", 2, "12:01:11"), ("ended", 1, "12:01:20"))
    record = tmp_path / "record"
    record.write_text(
        "".join(
            json.dumps(
                {
                    "event": event,
                    "time": f"2026-11-23T{time}Z",
                    "namespace": "tests",
                    "name": "job",
                    "uid": history.uid("job"),
                    "attempt": attempt,
                    "claim": f"claim-job-{attempt}",
                    "worker": "worker-0/1",
                }
            )
            + "\n"
            for event, attempt, time in times
        )
    )
    file = written(history.end(), tmp_path)
    result = shell("audit", "check", file, "--handler-record", str(record))
    assert result.exit_code == 0
    assert result.stderr.startswith("handler.alone: 1 handler went on beside the next")


def test_more_of_a_kind_than_are_shown_are_counted(shell: Shell, tmp_path: Path) -> None:
    history = HistoryBuilder()
    for number in range(130):
        history.create(f"job-{number}")
        history.move(f"job-{number}", "Cancelled")
    result = shell("audit", "check", written(history.end(), tmp_path))
    assert "job.reason   30 more" in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == "130 violations of 1 rule"


def test_a_history_may_come_by_stdin_of_another_command(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    text = Path(written(history.end(), tmp_path)).read_text()
    assert "no violation" in shell.ok("audit", "check", "-", stdin=text)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("hello", 2, "not a history"),
        ("", 2, "is empty"),
        ('{"line": "start"}\n{"line": "li\n{"line": "end"}\n', 2, ":2: not a line"),
        ('{"line": "start", "format": 99, "version": "9"}', 2, "newer version"),
        (None, 1, "No such file"),
    ],
)
def test_what_is_no_history_is_refused(
    shell: Shell, tmp_path: Path, content: str | None, code: int, message: str
) -> None:
    file = tmp_path / "h"
    if content is not None:
        file.write_text(content)
    result = shell("audit", "check", str(file))
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_evidence_that_cannot_be_read_is_refused(
    shell: Shell, history: HistoryBuilder, tmp_path: Path
) -> None:
    file, broken = written(history.end(), tmp_path), tmp_path / "audit.log"
    broken.write_text("not JSON\n")
    result = shell("audit", "check", file, "--audit-log", str(broken))
    assert (result.exit_code, "audit.log:1" in result.stderr) == (2, True)
    result = shell("audit", "check", file, "--handler-record", str(tmp_path / "missing"))
    assert (result.exit_code, "No such file" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["record", "check"])
def test_each_command_explains_itself_with_examples(shell: Shell, command: str) -> None:
    text = shell.ok("audit", command, "--help")
    assert f"asyncjob audit {command} " in text
    assert all(name in shell.ok("audit", "--help") for name in ("record", "check"))


def test_options_without_their_file_are_refused(shell: Shell) -> None:
    for words in (["check"], ["record"], ["check", "h", "--clock-tolerance", "-1"]):
        result = shell("audit", *words)
        assert (result.exit_code, result.stdout) == (2, "")


def test_a_gateway_cannot_be_recorded(shell: Shell, tmp_path: Path) -> None:
    result = shell("audit", "record", str(tmp_path / "h"), "--server", "http://gateway")
    assert (result.exit_code, "--server" in result.stderr) == (2, True)
    assert not (tmp_path / "h").exists()


def test_a_file_that_exists_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    cluster = str(plain_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1"))
    (tmp_path / "h").write_text("precious")
    for options, code, message in (([], 1, "--append"), (["--append"], 2, "not a history")):
        result = shell("audit", "record", str(tmp_path / "h"), "--kubeconfig", cluster, *options)
        assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
        assert (tmp_path / "h").read_text() == "precious"


def test_a_cluster_that_cannot_be_reached_leaves_no_file(shell: Shell, tmp_path: Path) -> None:
    result = shell("audit", "record", str(tmp_path / "h"), "--kubeconfig", str(tmp_path / "none"))
    assert (result.exit_code, "no cluster" in result.stderr) == (7, True), result.stderr
    assert not (tmp_path / "h").exists()
