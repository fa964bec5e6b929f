"""What people see: tables, a job's page, hints."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click import unstyle

from asyncjob.cli.commands.watch import LiveJobs
from asyncjob.cli.output.detail import RenderContext, cron_job_detail, job_detail, job_hints
from asyncjob.cli.output.job_table import job_table, status_detail
from asyncjob.cli.output.live import fit_lines
from asyncjob.cli.output.printer import to_json, to_json_line
from asyncjob.cli.output.resource_tables import cron_job_table, queue_table, worker_table
from asyncjob.cli.output.tables import Cell, Table, one_line, render_lines, row
from asyncjob.rest.jobs import HistoryEvent
from support.in_memory.fake_jobs import a_cron, a_job, a_queue, a_worker

NOW = datetime(2026, 11, 21, 20, 5, tzinfo=UTC)
LOOK = RenderContext(NOW)
ERROR = {"type": "ValueError", "category": "Internal", "message": "no such column"}


def dead(name: str = "dead-1", **fields: Any) -> Any:
    history = [
        HistoryEvent(time="2026-11-21T20:00:00Z", phase="Created"),
        HistoryEvent(
            time="2026-11-21T20:00:05Z",
            phase="DeadLetter",
            attempt=1,
            reason="NotRetryable",
            message="no such column",
            worker="worker-1/69c0eead",
            start_time="2026-11-21T20:00:03Z",
        ),
    ]
    base = {"reason": "NotRetryable", "error": ERROR, "attempt": 1, "history": history}
    return a_job(name, "DeadLetter", **{**base, **fields})


def shown(table: Table, **how: Any) -> list[str]:
    return list(render_lines(table, **how))


def test_columns_are_padded_and_line_ends_are_not() -> None:
    table = Table(("A", "LONG"), [row("first", "x"), row("2", "")])
    assert shown(table) == ["A       LONG", "first   x", "2"]


def test_the_last_column_is_cut_where_the_terminal_ends() -> None:
    table = Table(("A", "WHY"), [row("a", "w" * 50)])
    assert shown(table, width=20)[1] == "a   " + "w" * 15 + "…"
    assert len(shown(table, width=10)[1]) == 54  # no room at all: the terminal wraps


def test_colours_change_nothing_but_colours() -> None:
    table = job_table([a_job(), dead()], NOW, wide=True)
    assert [unstyle(line) for line in shown(table, colour=True)] == shown(table)
    assert shown(table, colour=True) != shown(table)


def test_text_from_elsewhere_cannot_forge_output() -> None:
    assert one_line("a\nb\tc\x1b[31md\x07") == "a b c [31md "
    table = job_table([dead(error={**ERROR, "message": "x\n\x1b[2Jfake   Succeeded"})], NOW)
    assert len(shown(table)) == 2
    assert "\x1b" not in "".join(shown(table))


def test_a_list_says_why_each_job_is_where_it_is() -> None:
    message = "queue default is paused"
    jobs = [
        a_job("a", reason="QueuePaused", message=message),
        a_job("b", "Running", progress={"percent": 40, "message": "rendering"}),
        dead("c"),
        a_job("d", "Retrying", error=ERROR, reason="HandlerFailed", message="due soon"),
        a_job("e", "Succeeded", message="done"),
        a_job("f", "Scheduled", reason="NotBefore"),
        a_job("g", "Running"),
    ]
    assert [status_detail(job) for job in jobs] == [
        message,
        "rendering",
        "NotRetryable: ValueError: no such column",
        "ValueError: no such column",
        "",
        "NotBefore",
        "",
    ]


def test_a_table_of_jobs_has_the_columns_of_kubectl() -> None:
    job = a_job(phase="Running", attempt=2, progress={"percent": 40, "message": "on page 3"})
    assert shown(job_table([job], NOW)) == [
        "NAME        PHASE     TYPE         QUEUE     ATTEMPT   PROGRESS   AGE   WHY",
        "report-42   Running   report.csv   default   2         40%        5m    on page 3",
    ]


def test_a_wide_table_has_retries_worker_and_duration() -> None:
    job = dead(retries=3, max_retries=3, worker="worker-1", duration_seconds=2.25)
    text = "\n".join(shown(job_table([job], NOW, wide=True)))
    for part in ("RETRIES", "3/3", "worker-1", "2.2s"):
        assert part in text


def test_a_job_that_is_being_cancelled_says_so() -> None:
    assert (
        "Running, cancelling" in shown(job_table([a_job(phase="Running", cancelling=True)], NOW))[1]
    )


def test_a_page_of_a_job_has_its_state_first_then_facts_timeline_and_what_to_do() -> None:
    job = dead(payload={"a": None}, retries=3, max_retries=3, crashes=1, labels={"team": "mail"})
    assert list(job_detail(job, LOOK)) == [
        "dead-1   DeadLetter",
        "  NotRetryable",
        "  ValueError: no such column (Internal)",
        "",
        "Type        report.csv",
        "Queue       default",
        "Attempts    1 (3/3 retries, 1 crash)",
        "Created     2026-11-21 20:00:00, 5m ago",
        "Labels      team=mail",
        'Payload     {"a": null}',
        "",
        "TIME       PHASE        ATTEMPT   TOOK   WORKER     WHY",
        "20:00:00   Created",
        "20:00:05   DeadLetter   1         2s     worker-1   NotRetryable: no such column",
        "",
        "Next",
        "  asyncjob redrive dead-1                          run it again with fresh budgets",
        "  asyncjob dismiss dead-1                          give it up",
        "  kubectl -n default logs worker-1 | grep dead-1   its lines in the worker's log",
    ]


def test_a_page_shows_what_is_set_and_nothing_of_what_is_not() -> None:
    job = a_job(
        phase="Retrying",
        priority=5,
        reason="HandlerFailed",
        error=ERROR,
        next_attempt_at="2026-11-21T20:06:00Z",
        depends_on=[{"name": "first"}, {"array": "thumbs"}],
        parent={"name": "mother"},
        deduplication_id="d",
        payload_from={"secretKeyRef": {"name": "s", "key": "k"}},
        history_omitted=3,
        checkpoint=[1],
    )
    text = "\n".join(job_detail(job, LOOK))
    for part in (
        "Queue       default, priority 5",
        "Next        about 2026-11-21 20:06:00",
        "Depends on  first (Succeeded), array thumbs (Succeeded)",
        "Parent      mother",
        "Dedup id    d",
        "Payload     key k of Secret s",
        "Checkpoint  [1]",
        "3 older changes",
    ):
        assert part in text
    assert "Worker" not in text
    assert "Result" not in text


def test_what_a_job_waits_for_can_be_looked_at() -> None:
    needs = [{"name": "first"}, {"array": "thumbs"}, {"name": "second"}]
    waits = a_job(phase="Pending", reason="WaitingForDependency", depends_on=needs)
    text = "\n".join(job_detail(waits, LOOK))
    assert "asyncjob get first second " in text
    assert "asyncjob array get thumbs " in text
    only = a_job(phase="Pending", reason="WaitingForDependency", depends_on=needs[1:2])
    assert "the jobs it waits for" not in "\n".join(job_detail(only, LOOK))


def test_the_attempt_that_is_under_way_is_the_last_line_of_the_timeline() -> None:
    job = a_job(
        phase="Running",
        attempt=2,
        started_at="2026-11-21T20:04:00Z",
        worker="worker-1",
        error=ERROR,
    )
    lines = list(job_detail(job, LOOK))
    assert "20:04:00   Running   2                worker-1" in lines
    assert "  kubectl -n default logs worker-1 | grep report-42" in lines[-1]


def test_a_large_payload_is_cut() -> None:
    line = next(line for line in job_detail(a_job(payload="x" * 5000), LOOK) if "Payload" in line)
    assert len(line) < 450
    assert line.endswith("…")


@pytest.mark.parametrize(
    ("job", "commands"),
    [
        (dead(history=[]), ["redrive dead-1", "dismiss dead-1"]),
        (a_job(phase="Succeeded", has_result=True), ["result report-42"]),
        (a_job(phase="Succeeded"), ["rerun report-42"]),
        (a_job(phase="Cancelled"), ["rerun report-42"]),
        (a_job(phase="Running"), ["wait report-42"]),
        (a_job(phase="Running", cancelling=True), []),
        (a_job(suspended=True, phase="Pending"), ["resume report-42", "cancel report-42"]),
        (a_job(reason="QueuePaused"), ["queue resume default", "cancel report-42"]),
        (a_job(), ["workers --queue default", "cancel report-42"]),
        (
            a_job(phase="Pending", reason="WaitingForDependency", depends_on=[{"name": "a"}]),
            ["get a", "cancel report-42"],
        ),
        (a_job(phase="Retrying"), ["cancel report-42"]),
    ],
)
def test_hints_are_what_makes_sense_in_each_state(job: Any, commands: list[str]) -> None:
    assert [hint.command for hint in job_hints(job, "k a")] == [f"k a {text}" for text in commands]


def test_queues_show_counts_state_and_limits() -> None:
    spec = {"maxConcurrency": 5, "rateLimit": {"count": 10, "periodSeconds": 60}}
    queues = [
        a_queue(counts={"Queued": 7, "DeadLetter": 1}, oldest_queued_seconds=300, spec=spec),
        a_queue("mail", paused=True, configured=False),
        a_queue("old", paused=True, drained=True),
    ]
    first, second, third = shown(queue_table(queues))[1:]
    assert " ".join(first.split()) == ("default open 7 0 0 0 0 1 5m 0 0 5 at once, 10 per 60s")
    assert second.split()[:2] == ["mail", "paused"]
    assert second.endswith("no AsyncQueue")
    assert third.split()[:2] == ["old", "drained"]


def test_schedules_and_workers_have_a_line_each() -> None:
    cron = a_cron(next_scheduled_at="2026-11-21T20:10:00Z", suspended=True, reason="Started")
    assert shown(cron_job_table([cron], NOW))[1].split()[-3:] == ["in", "5m", "Started"]
    assert shown(worker_table([a_worker(running=4)], NOW))[1].split() == [
        *("worker-0", "default", "4", "4", "5m", "report.csv"),
    ]


def test_the_page_of_a_schedule_says_when_what_and_what_next() -> None:
    text = "\n".join(cron_job_detail(a_cron(last_scheduled_at="2026-11-21T20:00:00Z"), LOOK))
    for part in (
        "nightly   active",
        "30 2 * * * (Europe/Berlin)",
        "5m ago",
        "cron trigger nightly",
    ):
        assert part in text


def test_a_live_view_keeps_each_job_once_and_forgets_finished_ones_first() -> None:
    changes = LiveJobs(max_jobs=2)
    for job in (a_job("a"), a_job("b", "Succeeded"), a_job("a", "Running"), a_job("c")):
        changes.update(job)
    assert [(job.id, job.phase.value) for job in changes.newest()] == [
        ("a", "Running"),
        ("c", "Queued"),
    ]
    assert changes.phase_summary() == "1 Queued, 1 Running"


def test_a_live_view_is_not_longer_than_the_screen() -> None:
    assert fit_lines(["1", "2"], 2) == ["1", "2"]
    assert fit_lines(["1", "2", "3"], 2) == ["1", "… 2 more"]


def test_a_cell_without_text_is_not_coloured() -> None:
    assert shown(Table(("A", "B"), [row(Cell("", "red"), "x")]), colour=True)[1] == "    x"


def test_json_keeps_what_would_steer_a_terminal_and_does_not_print_it() -> None:
    value = {"a": "\x1b[2J \x9b2J \x7f \u202e \ud800 \u2028 é 漢"}
    for text in (to_json(value), to_json_line(value)):
        assert json.loads(text) == value
        assert all(char.isprintable() or char == "\n" for char in text)
        assert "é 漢" in text


def test_a_job_shows_its_steps_with_time_and_size() -> None:
    at = {"startedAt": "2026-11-21T20:00:00Z", "completedAt": "2026-11-21T20:00:02Z"}
    reference = {"uri": "s3://b/x", "sizeBytes": 70000, "sha256": "0"}
    steps = [
        {"key": "charge", "attempt": 1, "sizeBytes": 12, **at},
        {"key": "read", "attempt": 2, "sizeBytes": 70000, "resultRef": reference, **at},
    ]
    lines = list(job_detail(a_job(steps=steps), LOOK))
    first = lines.index("STEP     DONE       ATTEMPT   TOOK   BYTES")
    assert lines[first + 1] == "charge   20:00:02   1         2s     12"
    assert lines[first + 2] == "read     20:00:02   2         2s     70000, offloaded"
    assert not any(line.startswith("STEP") for line in job_detail(a_job(), LOOK))


def test_a_job_shows_its_waits_with_their_ends() -> None:
    waits = [
        {"key": "nap", "kind": "Sleep", "until": "2026-11-21T20:00:02Z", "over": True},
        {"key": "approval", "kind": "Signal", "until": "2026-11-21T20:09:00Z"},
    ]
    lines = [line.rstrip() for line in job_detail(a_job(waits=waits), LOOK)]
    first = lines.index("WAIT       KIND     UNTIL                 OVER")
    assert lines[first + 1] == "nap        Sleep    2026-11-21 20:00:02   yes"
    assert lines[first + 2] == "approval   Signal   2026-11-21 20:09:00"
    signals = [{"name": "approval", "sentBy": "ada"}]
    come = list(job_detail(a_job(waits=waits, signals=signals), LOOK))
    assert "approval   Signal   2026-11-21 20:09:00   yes" in [line.rstrip() for line in come]
    assert not any(line.startswith("WAIT") for line in job_detail(a_job(), LOOK))


def test_the_deadline_of_a_job_is_shown() -> None:
    job = a_job(deadline_at="2026-11-21T20:09:00Z")
    assert any("Deadline" in line for line in job_detail(job, LOOK))
    assert not any("Deadline" in line for line in job_detail(a_job(), LOOK))
