"""What each command asks of the jobs, prints and exits with."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob.cli.connection import ConnectionOptions
from asyncjob.client.errors import JobNotFoundError
from asyncjob.errors import NoClusterError, UnknownOutcomeError
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.listing import Selection
from support.in_memory.fake_jobs import FakeJobs, a_cron, a_job, a_queue, a_worker
from support.parts.cli_shell import Shell


@pytest.fixture
def jobs(shell: Shell) -> FakeJobs:
    return shell.jobs.add(
        a_job("a"), a_job("run", "Running", attempt=1), a_job("dead", "DeadLetter"), a_job("b")
    )


def test_a_job_is_submitted_with_pairs_and_options(shell: Shell) -> None:
    said = shell.ok("submit", "SEND_EMAIL", "to=ada@example.com", "n:=1", "-q", "mail", "--suspend")
    assert said == "job-1 created\n"
    [made] = shell.jobs.submitted
    assert (made.type, made.queue, made.suspend) == ("SEND_EMAIL", "mail", True)
    assert made.payload == {"to": "ada@example.com", "n": 1}


@pytest.mark.parametrize(
    ("words", "stdin", "payloads"),
    [
        (["t"], None, [None]),
        (["t", "[1, 2]"], None, [[1, 2]]),
        (["t", "-f", "-"], '{"a": 1}', [{"a": 1}]),
        (["t", "-f", "-"], "a: 1\n---\na: 2", [{"a": 1}, {"a": 2}]),
        (["-f", "-"], '{"type": "t", "payload": 1}\n{"type": "t"}', [1, None]),
    ],
)
def test_payloads_and_jobs_come_from_arguments_or_files(
    shell: Shell, words: list[str], stdin: str | None, payloads: list[Any]
) -> None:
    shell.ok("submit", *words, stdin=stdin)
    assert [one.payload for one in shell.jobs.submitted] == payloads


def test_one_that_exists_is_told_from_one_that_was_created(shell: Shell, jobs: FakeJobs) -> None:
    assert shell.ok("submit", "t", "--name", "run") == "run exists (Running)\n"
    answer = json.loads(shell.ok("submit", "t", "--name", "x", "-o", "json"))
    assert answer == {"id": "x", "created": True, "phase": "Queued"}
    assert shell.ok("submit", "t", "-o", "name") == "job-1\n"


def test_of_many_each_is_told_and_the_sum_of_it(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text("\n".join(json.dumps({"type": kind}) for kind in ("a", "bad", "c")))
    shell.jobs.refuse = lambda one: "no such queue" if one.type == "bad" else None
    result = shell("submit", "-f", str(file))
    assert result.exit_code == 1
    assert result.stdout == "job-1 created\njob-2 created\n"
    refused = "no such queue (asyncjob explain key-reused)"
    assert result.stderr == f"error: {file}:2: {refused}\n2 created, 1 refused\n"
    items = json.loads(shell("submit", "-f", str(file), "-o", "json").stdout)["items"]
    assert [sorted(item) for item in items] == [["job"], ["error"], ["job"]]


def test_nothing_is_submitted_if_anything_is_wrong(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("type: t")
    (tmp_path / "b.yaml").write_text("type: t\npriority: 5000")
    result = shell("submit", "-f", str(tmp_path))
    assert result.exit_code == 2
    assert "b.yaml: priority: " in result.stderr
    assert result.stderr.endswith("nothing was submitted (asyncjob explain invalid)\n")
    assert shell.jobs.submitted == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submit"], "missing argument TYPE"),
        (["submit", "t", "a=1", "-f", "x.json"], "not both"),
        (["submit", "t", "{"], "is not JSON"),
        (["submit", "t", "name"], "'name' is not a pair: write key=text"),
        (["submit", "t", "-f", "gone.json"], "gone.json: No such file"),
        (["submit", "t", "--not-before", "soon"], "+10m"),
        (["get"], "Missing argument"),
        (["get", " "], "is not a valid name"),
        (["list", "--phase", "odd"], "is not one of Pending"),
        (["list", "--older-than", "x"], "write 90s"),
        (["list", "--queue", "Not A Queue"], "--queue: It should have lower-case letters"),
        (["list", "-o", "xml"], "'xml' is not one of"),
        (["lst"], "did you mean list?"),
        (["redrive"], "missing argument JOB"),
        (["redrive", "a", "--all"], "not both"),
        (["redrive", "a", "--dry-run"], "--dry-run needs filters"),
        (["dismiss", "--all"], "pass --yes to dismiss the jobs"),
        (["priority", "5000", "a"], "-1000<=x<=1000"),
        (["--server=x", "list", "--context=y"], "use one of them"),
        (["cron", "backfill", "x", "--from=2026-01-02", "--to=2026-01-01"], "must be later"),
    ],
)
def test_a_mistake_is_one_line_with_the_way_out_and_does_nothing(
    shell: Shell, words: list[str], said: str
) -> None:
    result = shell(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1 + (said.startswith("gone"))
    assert shell.jobs.asked == []


def test_a_submitted_job_can_be_waited_for(shell: Shell) -> None:
    shell.jobs.script["x"] = [a_job("x"), a_job("x", "Running"), a_job("x", "Succeeded")]
    result = shell("submit", "t", "--name=x", "--wait")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["x Queued", "x Running", "x Succeeded"]
    assert result.stdout.splitlines()[1].startswith("x      Succeeded")


@pytest.mark.parametrize(
    ("phase", "code"), [("Succeeded", 0), ("DeadLetter", 4), ("Cancelled", 5), ("Running", 6)]
)
def test_how_a_wait_ended_is_in_the_exit_code(shell: Shell, phase: str, code: int) -> None:
    shell.jobs.add(a_job("x", phase))
    assert shell("wait", "x", "--timeout=10s").exit_code == code
    assert shell.slept == (10 if code == 6 else 0)


def test_a_wait_for_several_ends_with_the_worst(shell: Shell, jobs: FakeJobs) -> None:
    result = shell("wait", "dead", "gone", "asyncjob/run", "--timeout=0", "-o", "json")
    assert result.exit_code == 3
    assert [one["id"] for one in json.loads(result.stdout)["items"]] == ["dead", "run"]


def test_a_wait_for_a_phase_ends_when_it_can_no_longer_come(shell: Shell) -> None:
    shell.jobs.script["x"] = [a_job("x"), a_job("x", "Cancelled")]
    result = shell("wait", "x", "--for=running", "--quiet")
    assert result.exit_code == 5
    assert result.stderr == "error: x ended as Cancelled without reaching Running\n"


def test_a_server_that_is_away_for_a_while_ends_no_wait(shell: Shell) -> None:
    away = UnknownOutcomeError("no answer")
    shell.jobs.script["x"] = [away, away, a_job("x", "Succeeded")]
    result = shell("wait", "x")
    assert result.exit_code == 0
    assert result.stderr.count("no answer") == 1


def test_a_job_deleted_while_it_is_waited_for_is_not_found(shell: Shell) -> None:
    shell.jobs.script["x"] = [a_job("x"), JobNotFoundError("gone")]
    result = shell("wait", "x")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        3,
        "error: x was deleted meanwhile",
    )


def test_lists_are_tables_names_or_data(shell: Shell, jobs: FakeJobs) -> None:
    assert shell.ok("list").splitlines()[0].split()[:3] == ["NAME", "PHASE", "TYPE"]
    assert shell.ok("list", "-o", "name", "--limit", "2") == "a\nrun\n"
    found = json.loads(shell.ok("list", "-o", "json"))
    assert found == yaml.safe_load(shell.ok("list", "-o", "yaml"))
    assert [one["id"] for one in found["items"]] == ["a", "run", "dead", "b"]


def test_filters_make_a_selection(shell: Shell) -> None:
    words = ("--phase=dead-letter", "--phase=Running", "-q", "mail", "--type=t", "-l", "a=b")
    more = ("--older-than=2h", "--text=x", "--parent=asyncjob/p", "--reason=Released")
    result = shell("list", *words, *more)
    assert shell.jobs.asked == [
        (
            "list",
            Selection(
                phase=[Phase.DEAD_LETTER, Phase.RUNNING],
                queue="mail",
                type="t",
                label="a=b",
                older_than_seconds=7200,
                text="x",
                parent="p",
                reason="Released",
            ),
        )
    ]
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no jobs match\n")


def test_an_empty_list_is_valid_data(shell: Shell) -> None:
    assert json.loads(shell.ok("list", "-o", "json")) == {"items": []}


def test_a_long_list_is_one_table(shell: Shell) -> None:
    shell.jobs.add(*(a_job(f"job-{number:04}") for number in range(1200)))
    lines = shell.ok("list").splitlines()
    assert len(lines) == 1201
    assert sum(line.startswith("NAME") for line in lines) == 1


def test_get_shows_those_there_are_and_says_which_are_not(shell: Shell, jobs: FakeJobs) -> None:
    result = shell("get", "dead", "gone", "asyncjob.asyncjob.dev/a")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: there is no job gone")
    assert "dead   DeadLetter" in result.stdout
    assert "a   Queued" in result.stdout
    assert json.loads(shell.ok("get", "a", "-o", "json"))["id"] == "a"
    assert len(json.loads(shell.ok("get", "a", "b", "-o", "json"))["items"]) == 2
    assert shell("get", "gone", "-o", "json").stdout == ""


def test_hints_name_the_command_as_it_was_called(shell: Shell, jobs: FakeJobs) -> None:
    assert "  kubectl asyncjob redrive dead" in shell.ok("get", "dead", name="kubectl asyncjob")


def test_results_and_histories_are_printed(shell: Shell) -> None:
    shell.jobs.add(a_job("x", "Succeeded", has_result=True, result={"rows": 3}))
    assert json.loads(shell.ok("result", "x")) == {"rows": 3}
    assert shell.ok("result", "x", "-o", "yaml") == "rows: 3\n"
    assert "Created" in shell.ok("history", "x")
    assert json.loads(shell.ok("history", "x", "-o", "json"))["items"][0]["phase"] == "Created"
    shell.jobs.add(a_job("y"))
    assert shell("result", "y").exit_code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cancel", "run"], "run being cancelled"),
        (["cancel", "dead"], "dead being dismissed"),
        (["suspend", "a"], "a suspended"),
        (["resume", "a"], "a resumed"),
        (["resume", "dead"], "dead has finished (DeadLetter): nothing changes"),
        (["priority", "-5", "a"], "a has priority -5"),
        (["rerun", "dead"], "dead-r1 will be created"),
        (["redrive", "dead"], "dead is being redriven"),
        (["dismiss", "dead"], "dead is being dismissed"),
    ],
)
def test_requests_are_acknowledged_in_a_line(
    shell: Shell, jobs: FakeJobs, words: list[str], said: str
) -> None:
    assert shell.ok(*words) == f"{said}\n"
    assert json.loads(shell.ok(*words, "-o", "json"))["id"] in {words[-1], "dead-r1"}


def test_one_that_is_refused_keeps_none_of_the_others_from_it(shell: Shell, jobs: FakeJobs) -> None:
    shell.jobs.add(a_job("done", "Succeeded"))
    result = shell("cancel", "done", "gone", "run", "--cascade")
    assert result.exit_code == 3
    assert result.stdout == "run being cancelled\n"
    said = "error: done has succeeded (asyncjob explain not-cancellable)"
    assert result.stderr.splitlines()[0] == said
    assert ("cancel", "run", True) in jobs.asked


def test_a_rerun_that_the_operator_has_yet_to_create_is_waited_for(
    shell: Shell, jobs: FakeJobs
) -> None:
    not_yet = JobNotFoundError("no dead-r1")
    jobs.script["dead-r1"] = [not_yet, not_yet, not_yet, a_job("dead-r1", "Succeeded")]
    assert shell("rerun", "dead", "--wait").exit_code == 0
    assert shell.slept == pytest.approx(0.2 + 0.4 + 0.8)


def test_many_dead_letters_are_redriven_by_filter(shell: Shell, jobs: FakeJobs) -> None:
    jobs.add(a_job("stubborn", "DeadLetter"))
    result = shell("redrive", "--type=report.csv", "--limit=5", "--yes")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: stubborn: it was redriven meanwhile",
        "redriven 1 dead letter; 1 failed",
    ]
    assert jobs.asked == [("redrive_many", Selection(type="report.csv"), 5, False)]


def test_a_dry_run_names_them_and_asks_nobody(shell: Shell, jobs: FakeJobs) -> None:
    result = shell("dismiss", "--all", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "dead\n")
    assert result.stderr == "would dismiss 1 dead letter\n"
    assert jobs.asked == [("dismiss_many", Selection(), 100, True)]
    report = json.loads(shell.ok("dismiss", "--all", "--dry-run", "-o", "json"))
    assert (report["done"], report["dryRun"]) == (["dead"], True)


@pytest.mark.parametrize(("answer", "asked"), [("y\n", 2), ("n\n", 1)])
def test_a_person_is_asked_first(
    shell: Shell, jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, answer: str, asked: int
) -> None:
    monkeypatch.setattr("asyncjob.cli.commands.dead_letters.stdin_is_terminal", lambda: True)
    result = shell("dismiss", "--all", stdin=answer)
    assert result.exit_code == 0
    assert "Dismiss 1 dead letter (dead)? [y/N]" in result.stderr
    assert len(jobs.asked) == asked


def test_queues_are_shown_paused_and_resumed(shell: Shell) -> None:
    shell.jobs.all_queues["default"] = a_queue(counts={"Queued": 3})
    assert shell.ok("queue", "list").splitlines()[1].split()[:3] == ["default", "open", "3"]
    assert shell.ok("queue", "pause", "default") == "queue default paused\n"
    assert shell.ok("queue", "get", "default").splitlines()[1].split()[1] == "paused"
    assert json.loads(shell.ok("queue", "resume", "default", "-o", "json"))["paused"] is False
    assert shell.ok("queue", "top").splitlines()[0].split()[0] == "NAME"
    assert shell.ok("queue", "list", "-o", "name") == "default\n"


def test_schedules_are_shown_and_acted_on(shell: Shell) -> None:
    shell.jobs.crons["nightly"] = a_cron()
    assert shell.ok("cron", "list").splitlines()[1].split()[0] == "nightly"
    assert "30 2 * * * (Europe/Berlin)" in shell.ok("cron", "get", "nightly")
    assert shell.ok("cron", "trigger", "nightly") == "nightly-t1 will run now\n"
    assert shell.ok("cron", "suspend", "nightly") == "cron job nightly suspended\n"
    assert json.loads(shell.ok("cron", "resume", "nightly", "-o", "json"))["suspended"] is False
    result = shell("cron", "get", "weekly")
    assert (result.exit_code, "asyncjob cron list" in result.stderr) == (3, True)


def test_a_backfill_is_asked_for_once_its_range_makes_sense(shell: Shell) -> None:
    shell.jobs.crons["nightly"] = a_cron()
    shell.ok("cron", "backfill", "nightly", "--from=-2d", "--to=-1d", "--max-active=3")
    options = {"limit": 100, "max_active": 3, "replace": False}
    assert shell.jobs.backfills == [
        ("nightly", "2026-11-19T20:05:00Z", "2026-11-20T20:05:00Z", options)
    ]


def test_workers_are_chosen_by_queue_and_type(shell: Shell) -> None:
    shell.jobs.all_workers = [a_worker(), a_worker("w", queue="mail", types=["SEND_EMAIL"])]
    assert shell.ok("workers", "-q", "mail").splitlines()[1].split()[0] == "w"
    assert shell.ok("workers", "--type=report.csv", "-o", "name") == "asyncjob-worker-worker-0\n"
    assert shell("workers", "-q", "x").stderr == "no live workers match\n"


def test_changes_are_lines_where_nobody_looks(shell: Shell, jobs: FakeJobs) -> None:
    jobs.changes = [a_job("a", "Running"), a_job("a", "Succeeded")]
    lines = shell.ok("watch", "a").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["a", "Queued"],
        ["a", "Running"],
        ["a", "Succeeded"],
    ]
    objects = shell.ok("watch", "--only-changes", "-o", "json").splitlines()
    assert [json.loads(line)["phase"] for line in objects] == ["Running", "Succeeded"]
    assert shell.ok("watch", "--only-changes", "-o", "name") == "a\na\n"


def test_options_of_the_place_count_before_and_after_the_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.ok("-n", "mail", "--context=c", "list")
    shell.ok("-n", "mail", "list", "--namespace", "other")
    monkeypatch.setenv("ASYNCJOB_SERVER", "http://gateway")
    monkeypatch.setenv("ASYNCJOB_TOKEN", "t")
    shell.ok("list")
    shell.ok("list", "--server", "", "--context", "c")
    assert shell.places == [
        ConnectionOptions(namespace="mail", context="c"),
        ConnectionOptions(namespace="other"),
        ConnectionOptions(server="http://gateway", token="t"),
        ConnectionOptions(server="", token="t", context="c"),
    ]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NoClusterError("no cluster"), 7, "error: no cluster (asyncjob explain no-cluster)\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (RuntimeError("odd"), 1, "error: RuntimeError: odd (this should not happen"),
    ],
)
def test_every_end_is_one_line_and_a_code(
    shell: Shell, error: BaseException, code: int, said: str
) -> None:
    shell.jobs.script["x"] = [error]
    result = shell("history", "x")
    assert result.exit_code == code
    assert result.stderr.lstrip().startswith(said)
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [["submit", "-f", "/no\x1b[31m\x9b"], ["l\x1b[31m\x9b"], ["list", "--l\x1b[31m\x9b"]]
)
def test_errors_print_no_control_characters_of_what_was_given(
    shell: Shell, words: list[str]
) -> None:
    done = shell(*words)
    assert done.exit_code == 2
    assert all(char.isprintable() or char == "\n" for char in done.stderr)


@pytest.mark.parametrize("name", ["../..", "a/b", "Default", "x" * 64, "a?b=c"])
def test_what_is_no_namespace_is_asked_of_nobody(shell: Shell, name: str) -> None:
    done = shell("-n", name, "list")
    assert (done.exit_code, shell.places) == (2, [])
    assert "is not a valid namespace name" in done.stderr
