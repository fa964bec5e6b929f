"""How attempts in processes of their own end: returned, raised, refused, died."""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asyncjob.app.context import Stop
from asyncjob.free_json import FreeJsonError
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.isolation import child
from asyncjob_worker.isolation.process_execution import MIN_REPORT_INTERVAL
from support.apps.isolated import app
from support.parts.isolation import IsolatedAttempts, begin_with, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ended(attempts: IsolatedAttempts, type_: str, payload: Any = None) -> PhaseChange:
    move = await attempts.run(job(type_, payload))
    assert move
    return move


async def test_async_and_sync_handlers_return_json_by_their_types(
    attempts: IsolatedAttempts,
) -> None:
    assert await attempts.result("echo", {"a": [1, None]}) == {"a": [1, None]}
    assert await attempts.result("echo") == "nothing"
    assert await attempts.result("order", {"number": 3}) == {"due": "2026-01-03"}
    due = {"number": 1, "due": "2026-02-01"}
    assert await attempts.result("order", due) == {"due": "2026-02-01"}


async def test_a_handler_sees_its_job_and_nothing_of_the_workers(
    attempts: IsolatedAttempts,
) -> None:
    request = {"headers": {"accept": ["*/*"]}}
    of = job("look", name="n", uid="u", checkpoint={"row": 1}, spec={"request": request})
    move = await attempts.run(of)
    assert move
    seen: Any = move.fields["result"]
    assert (seen["name"], seen["token"], seen["checkpoint"]) == ("n", "u/1", {"row": 1})
    assert seen["request"] == request
    assert 0 < seen["seconds"] <= of.policy.execution_timeout_seconds
    assert seen["cancelled"] is False
    assert seen["pid"] == seen["group"] != os.getpid()


async def test_a_process_has_no_file_of_the_workers_and_no_client_of_the_api(
    attempts: IsolatedAttempts,
) -> None:
    inherited, input_ = os.open("/dev/zero", os.O_RDONLY), os.dup(0)
    os.set_inheritable(inherited, True)
    os.dup2(inherited, 0)
    fresh = IsolatedAttempts()
    try:
        seen = await fresh.result("look")
    finally:
        os.dup2(input_, 0)
        os.close(input_)
        os.close(inherited)
        await fresh.close()
    assert seen["stdin"] == "/dev/null"
    kinds = sorted(link.partition(":")[0] for link in seen["fds"].values())
    assert kinds == ["anon_inode", "socket", "socket", "socket"]
    assert seen["handed-on"] == []
    assert not {"aiohttp", "kubernetes"} & set(seen["modules"])
    assert not seen["kube"]


async def test_the_payload_is_checked_in_the_process(attempts: IsolatedAttempts) -> None:
    move = await ended(attempts, "order", {"number": "x"})
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert str(move.fields["message"]).startswith("number: Input should be a valid integer")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


async def test_a_payload_deeper_than_a_frame_is_refused_at_once(attempts: IsolatedAttempts) -> None:
    for move in (
        await ended(attempts, "echo", nested(300)),
        await attempts.run(job("look", checkpoint=nested(300))),
    ):
        assert move
        assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
        assert "nested deeper than 254 levels" in str(move.fields["message"])


async def test_a_handler_without_a_payload_runs_however_deep_it_is(
    attempts: IsolatedAttempts,
) -> None:
    assert (await attempts.result("look", nested(900)))["checkpoint"] is None


async def test_a_validator_that_ends_the_process_is_a_crash(attempts: IsolatedAttempts) -> None:
    assert (await ended(attempts, "order", {"number": -1})).reason is Reason.HANDLER_CRASHED


@pytest.mark.parametrize(
    ("what", "target", "reason", "error"),
    [
        ("own", "Retrying", "HandlerFailed", ("Own", "Mine", "mine")),
        ("retry", "Retrying", "RetryRequested", ("Retry", "Internal", "not yet")),
        ("fail", "DeadLetter", "NotRetryable", ("Fail", "NotFound", "never")),
        ("other", "Retrying", "HandlerFailed", ("KeyError", "NotFound", "'other'")),
        (
            "cancelled",
            "Retrying",
            "HandlerFailed",
            ("HandlerExitError", "Internal", "the handler cancelled itself"),
        ),
        (
            "nan",
            "DeadLetter",
            "ResultRefused",
            ("ResultRefused", "Validation", "the checkpoint is nan, which JSON does not have"),
        ),
    ],
)
async def test_what_a_handler_raises_counts_as_it_would_in_the_worker(
    attempts: IsolatedAttempts, what: str, target: str, reason: str, error: tuple[str, str, str]
) -> None:
    move = await ended(attempts, "raise", what)
    assert (move.target, move.reason) == (target, reason)
    found: Any = move.fields["error"]
    assert (found["type"], found["category"], found["message"]) == error


async def test_the_delay_that_a_retry_asks_for_is_kept(attempts: IsolatedAttempts) -> None:
    assert (await ended(attempts, "raise", "retry")).fields["retryDelaySeconds"] == 7


async def test_an_error_of_any_length_fits(attempts: IsolatedAttempts) -> None:
    error: Any = (await ended(attempts, "raise", "long")).fields["error"]
    assert len(error["message"]) == 4096


async def test_sys_exit_is_a_failure_as_elsewhere(attempts: IsolatedAttempts) -> None:
    move = await ended(attempts, "sys-exit")
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert "sys.exit(7)" in str(move.fields["message"])


@pytest.mark.parametrize(
    ("type_", "payload", "words"),
    [
        ("not-json", None, "the result is not JSON: Unable to serialize unknown type"),
        ("big", 300_000, "the result has 300002 bytes, the limit is 262144"),
    ],
)
async def test_a_result_that_cannot_be_stored_is_refused(
    attempts: IsolatedAttempts, type_: str, payload: Any, words: str
) -> None:
    move = await ended(attempts, type_, payload)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert words in str(move.fields["message"])


async def test_a_payload_that_no_frame_takes_is_refused_with_its_size(
    attempts: IsolatedAttempts,
) -> None:
    move = await ended(attempts, "echo", "x" * 64 * 1024 * 1024)
    assert move.reason is Reason.INVALID_PAYLOAD
    assert "the payload: it has 67109" in str(move.fields["message"])


async def test_a_result_that_no_frame_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_BYTES", child._ENVELOPE_BYTES + 10)
    handler = app.handlers["big"].inside_process()
    assert child._plain_result(handler, "x" * 8) == "x" * 8
    with pytest.raises(FreeJsonError, match="the result has 11 bytes, the limit is 10"):
        child._plain_result(handler, "x" * 9)


@pytest.mark.parametrize(
    ("type_", "payload", "words"),
    [
        ("segfault", None, "died by SIGSEGV"),
        ("exit-now", 0, "ended with exit code 0"),
        ("kill-itself", signal.SIGKILL, "was killed by SIGKILL, perhaps out of memory"),
        ("garbage", None, "sent no valid message: a frame of 2 bytes is not JSON"),
        (
            "garbage",
            '{"is":"done"}',
            "sent no valid message: a handler that has returned, without its",
        ),
        (
            "garbage",
            '{"is":"failed","error":{"kind":"x"}}',
            "sent no valid message: an error of an unkno",
        ),
        (
            "garbage",
            '{"is":"report","progress":[1]}',
            "sent no valid message: a progress that is not a",
        ),
        ("garbage", '{"is":"ask","wait":{}}', "sent no valid message: a message lacks 'name'"),
        # Its event loop and the thread that hears its worker find out, in either order.
        ("close-all", None, ""),
    ],
)
async def test_a_death_is_a_crash_of_that_attempt_only(
    attempts: IsolatedAttempts, type_: str, payload: Any, words: str
) -> None:
    move = await ended(attempts, type_, payload)
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_CRASHED)
    assert f"crash 1 of 3 allowed: the handler's process {words}" in str(move.fields["message"])
    assert move.fields["crashes"] == 1
    assert "retries" not in move.fields
    error: Any = move.fields["error"]
    assert (error["type"], error["category"]) == ("HandlerCrashed", "Crash")


async def test_the_neighbours_of_a_death_go_on_and_the_next_job_has_a_new_process(
    attempts: IsolatedAttempts, tmp_path: Path
) -> None:
    neighbour = job("obey-sync", str(tmp_path))
    beside, pid = await attempts.begin(neighbour, tmp_path)
    assert (await ended(attempts, "segfault")).reason is Reason.HANDLER_CRASHED
    assert (await attempts.result("look"))["pid"] != pid
    assert not beside.done()
    neighbour.stop(Stop.DRAINING)
    await beside
    assert (tmp_path / "obeyed").exists()


async def test_what_was_saved_before_the_death_is_there_to_resume_from(
    attempts: IsolatedAttempts,
) -> None:
    of = job("exit-now", 3)
    await attempts.run(of)
    assert of.latest_report.checkpoint == {"before": 3}


async def test_progress_and_checkpoints_come_through_however_many(
    attempts: IsolatedAttempts,
) -> None:
    of = job("flood", 20_000)
    begun = time.monotonic()
    move = await attempts.run(of)
    passed = time.monotonic() - begun
    assert move
    assert move.fields["result"] == 20_000
    assert of.latest_report.checkpoint == {"row": 19_999}
    assert of.latest_report.progress == {"percent": 99, "message": "row 19999"}
    # Each hand-over has a progress and a checkpoint; the first and the last do not wait.
    assert of.latest_report.version <= 2 * (passed / MIN_REPORT_INTERVAL + 3)


async def test_signals_for_the_worker_do_not_end_a_process_but_end_its_programs(
    attempts: IsolatedAttempts,
) -> None:
    assert await attempts.result("signal-itself") == "alive"
    assert await attempts.result("terminate-child") == -signal.SIGTERM


async def test_a_process_that_dies_while_idle_costs_no_job_anything(
    attempts: IsolatedAttempts,
) -> None:
    pid = (await attempts.result("look"))["pid"]
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_left(pid), "the idle process is reaped")
    assert (await attempts.result("look"))["pid"] != pid


async def test_a_process_of_whose_end_nobody_has_heard_yet_is_given_no_job(
    attempts: IsolatedAttempts,
) -> None:
    process = await attempts.pool.acquire(None)
    attempts.pool.release(process, usable=True)
    os.kill(process.pid, signal.SIGKILL)
    while is_left(process.pid):  # without a turn of the event loop
        time.sleep(0.001)  # noqa: ASYNC251
    assert not process.exited.done()
    assert (await attempts.pool.acquire(None)) is not process


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("", "the handler's process cannot start: '' names no module"),
        ("exits_at_import:app", "ended with exit code 5, before it was ready for the handler"),
        ("knows_others:app", "no handler for 'echo' where its process imports it"),
    ],
)
async def test_a_process_that_cannot_serve_is_a_failure_with_the_reason(
    tmp_path: Path, target: str, words: str
) -> None:
    (tmp_path / "exits_at_import.py").write_text("import os; os._exit(5)")
    other = "from asyncjob import WorkerApp; app = WorkerApp(); app.handler('x')(lambda job: 1)"
    (tmp_path / "knows_others.py").write_text(other)
    attempts = IsolatedAttempts(begin=replace(begin_with(target), path=[*sys.path, str(tmp_path)]))
    move = await ended(attempts, "echo")
    await attempts.close()
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert words in str(move.fields["message"])


async def test_what_a_handler_prints_and_logs_goes_where_the_workers_does(
    capfd: pytest.CaptureFixture[str],
) -> None:
    fresh = IsolatedAttempts()
    await fresh.result("speak")
    await fresh.close()
    out, err = capfd.readouterr()
    assert "printed by the handler" in out.splitlines()
    assert "logged by the handler" in err
    assert "job=j" in err
