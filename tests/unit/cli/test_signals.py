"""What `asyncjob signal` asks, prints and exits with; what a job has been told, and waits for."""

import json
from typing import Any

import pytest

from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES
from support.in_memory.fake_jobs import FakeJobs, a_job
from support.parts.cli_shell import Shell

WAITING: dict[str, Any] = {
    "reason": "WaitingForSignal",
    "waiting": [
        {"kind": "Sleep", "key": "nap", "until": "2026-11-28T00:00:00Z"},
        {"kind": "Signal", "key": "approval"},
    ],
}
TOLD: dict[str, Any] = {
    "signals": [
        {
            "name": "approval",
            "sentBy": "ada",
            "sentAt": "2026-11-21T20:04:00Z",
            "payload": {"a": 1},
        },
        {"name": "go", "sentBy": "bob"},
    ]
}


@pytest.fixture
def jobs(shell: Shell) -> FakeJobs:
    return shell.jobs.add(a_job("release", "Pending", **WAITING), a_job("done", "Succeeded"))


@pytest.mark.parametrize(
    ("words", "payload"),
    [
        ([], None),
        (["ok:=true", "note=checked"], {"ok": True, "note": "checked"}),
        (["[1, null]"], [1, None]),
        (["-5"], -5),
        (["false"], False),
    ],
)
def test_a_signal_is_sent_with_what_the_words_say(
    shell: Shell, jobs: FakeJobs, words: list[str], payload: Any
) -> None:
    assert shell.ok("signal", "release", "approval", *words) == ("release has been sent approval\n")
    assert jobs.asked == [("signal", "release", "approval", payload)]


def test_of_a_name_that_the_job_does_not_wait_for_it_is_said_what_it_waits_for(
    shell: Shell, jobs: FakeJobs
) -> None:
    result = shell("signal", "release", "aproval")
    assert (result.exit_code, result.stdout) == (0, "release has been sent aproval\n")
    assert result.stderr == "note: release waits for approval, and keeps aproval for later\n"
    assert shell("signal", "release", "approval").stderr == ""


def test_the_job_is_printed_as_data(shell: Shell, jobs: FakeJobs) -> None:
    told = json.loads(shell.ok("signal", "asyncjob/release", "approval", "1", "-o", "json"))
    assert told["signals"] == [{"name": "approval", "sentBy": "ada", "payload": 1}]
    assert shell.ok("signal", "release", "more", "-o", "name") == "release\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["signal"], "Missing argument 'JOB'"),
        (["signal", "release"], "Missing argument 'NAME'"),
        (["signal", " ", "approval"], "is not a valid name"),
        (["signal", "release", "approval", "ok"], "'ok' is not a pair"),
        (["signal", "release", "approval", "{"], "is not JSON"),
        (["signal", "release", "approval", "a=1", "a=2"], "'a' is given twice"),
        (["signal", "release", "no name"], "signal: 'no name' is not the name of a signal"),
        (
            ["signal", "release", "approval", f"note={'x' * MAX_SIGNAL_BYTES}"],
            "payload: it has 16395 bytes, the limit is 16384",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_field_and_nothing_is_sent(
    shell: Shell, jobs: FakeJobs, words: list[str], said: str
) -> None:
    result = shell(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert jobs.asked == []


@pytest.mark.parametrize(
    ("job", "said", "code"),
    [
        ("gone", "there is no job gone", 3),
        ("done", "done takes no signals (asyncjob explain conflict)", 9),
    ],
)
def test_a_job_that_takes_none_is_named(
    shell: Shell, jobs: FakeJobs, job: str, said: str, code: int
) -> None:
    result = shell("signal", job, "approval")
    assert result.exit_code == code
    assert said in result.stderr


def test_a_job_shows_what_it_waits_for_and_how_to_send_it(shell: Shell, jobs: FakeJobs) -> None:
    lines = shell.ok("get", "release").splitlines()
    assert "Waits for   Sleep nap until 2026-11-28 00:00:00, Signal approval" in lines
    [hint] = [line.split("   ")[0].strip() for line in lines if " signal " in line]
    assert hint == "asyncjob signal release approval KEY=VALUE"


def test_a_job_shows_what_it_has_been_told_and_by_whom(shell: Shell) -> None:
    shell.jobs.add(a_job("told", **TOLD), a_job("plain"))
    lines = shell.ok("get", "told").splitlines()
    assert 'Signal      approval from ada at 2026-11-21 20:04:00: {"a": 1}' in lines
    assert "Signal      go from bob" in lines
    assert "Signal" not in shell.ok("get", "plain")


def test_a_job_shows_which_children_it_waits_for(shell: Shell) -> None:
    waits = [{"kind": "Children", "key": "children pack-1 and 9 more (01234567)"}]
    shell.jobs.add(a_job("order", "Pending", reason="WaitingForChildren", waiting=waits))
    lines = shell.ok("get", "order").splitlines()
    assert "Waits for   children pack-1 and 9 more" in lines
