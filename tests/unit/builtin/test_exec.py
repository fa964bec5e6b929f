"""The handler `exec` with real programs."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob.errors import ConfigError
from asyncjob_worker.builtin import build_app, exec_program
from asyncjob_worker.builtin.assembly import read_settings
from asyncjob_worker.builtin.errors import ProgramFailedError, StoppedError, TimedOutError
from support.parts.handler_runs import context, run_handler
from support.processes.workers import until

SH = "/bin/sh"
PYTHON = sys.executable
PATIENCE = 10.0


def app_with(**environ: str) -> WorkerApp:
    return build_app(
        {"ASYNCJOB_EXEC_ALLOW": f"{SH},{PYTHON}", "PATH": os.environ["PATH"], **environ}
    )


async def shell(script: str, *arguments: str, **fields: Any) -> Any:
    return await execute(app_with(), script, *arguments, **fields)


async def execute(app: WorkerApp, script: str, *arguments: str, **fields: Any) -> Any:
    payload = {"argv": [SH, "-c", script, "sh", *arguments], **fields}
    return await run_handler(app, "exec", payload)


async def test_arguments_and_input_arrive_as_they_are_and_output_comes_back() -> None:
    result = await shell('cat; printf %s "$1" >&2', "$(id); *", stdin="ü\n")
    assert (result.exit_code, result.stdout.text, result.stderr.text) == (0, "ü\n", "$(id); *")


def test_it_is_off_unless_a_program_is_allowed() -> None:
    assert "exec" not in build_app({}).handlers
    assert "exec" in app_with().handlers


@pytest.mark.parametrize("path", ["/bin/true", "/bin/../bin/sh", "/bin//sh", "/BIN/SH"])
async def test_only_the_very_path_is_allowed(path: str) -> None:
    with pytest.raises(Fail, match="ASYNCJOB_EXEC_ALLOW") as refusal:
        await run_handler(app_with(), "exec", {"argv": [path]})
    assert refusal.value.category == "Permission"


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        ("argv", {"argv": ["sh"]}),
        ("argv", {"argv": []}),
        ("argv", {"argv": "/bin/sh -c id"}),
        ("argv.1", {"argv": [SH, "a\0b"]}),
        ("shell", {"argv": [SH], "shell": True}),
        ("maxOutputBytes", {"argv": [SH], "maxOutputBytes": 10**7}),
    ],
)
async def test_a_bad_payload_is_refused_by_field(field: str, payload: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError) as refusal:
        await run_handler(app_with(), "exec", payload)
    assert ".".join(map(str, refusal.value.errors()[0]["loc"])).startswith(field)


@pytest.mark.parametrize(
    "environ",
    [
        {"ASYNCJOB_EXEC_ALLOW": "sh"},
        {"ASYNCJOB_EXEC_ALLOW": "/bin/../bin/sh"},
        {"ASYNCJOB_EXEC_JOB_ENV": "A=B"},
        {"ASYNCJOB_EXEC_PASS_ENV": "A-B"},
    ],
)
def test_a_list_that_cannot_be_used_stops_the_worker_with_its_name(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(environ))):
        read_settings(environ)


async def test_nothing_of_the_workers_environment_is_passed_on_but_what_is_listed() -> None:
    app = app_with(SECRET="s", OWN="o", ASYNCJOB_EXEC_PASS_ENV="OWN", ASYNCJOB_EXEC_JOB_ENV="A")
    payload = {
        "argv": [PYTHON, "-I", "-c", "import os; print(*sorted(os.environ))"],
        "env": {"A": "1"},
    }
    names = (await run_handler(app, "exec", payload)).stdout.text.split()
    assert set(names) - {"LC_CTYPE"} == {"A", "HOME", "OWN", "TMPDIR"}


async def test_a_variable_that_jobs_may_not_set_is_refused_by_name() -> None:
    with pytest.raises(Fail, match=r"env\.LD_PRELOAD.*ASYNCJOB_EXEC_JOB_ENV"):
        await shell("true", env={"LD_PRELOAD": "/x.so"})


async def test_it_runs_in_a_fresh_folder_that_is_gone_afterwards() -> None:
    result = await shell('pwd; ls -A; touch left; test "$HOME" = "$PWD"')
    folder = result.stdout.text.strip()
    assert folder.startswith(tempfile.gettempdir())
    assert is_gone(Path(folder))


async def test_a_flood_of_output_is_cut_and_its_size_told() -> None:
    result = await shell("head -c 3000000 /dev/zero | tr '\\0' x", maxOutputBytes=1000)
    assert result.stdout.text == "x" * 1000
    assert (result.stdout.truncated, result.stdout.size) == (True, 3_000_000)
    assert not result.stderr.truncated


async def test_what_is_no_text_is_replaced() -> None:
    result = await shell("printf 'a\\377b'")
    assert result.stdout.text == "a�b"


async def test_input_that_nobody_reads_does_no_harm() -> None:
    assert (await shell("exec true", stdin="x" * 200_000)).exit_code == 0


async def test_a_program_that_closes_its_output_is_still_waited_for() -> None:
    result = await shell("exec >&- 2>&-; sleep 0.2")
    assert result.seconds >= 0.2


async def test_another_code_than_0_is_a_failure_with_the_end_of_stderr() -> None:
    with pytest.raises(ProgramFailedError, match=r"ended with 7: .*last words$") as failure:
        await shell("head -c 5000 /dev/zero | tr '\\0' e >&2; echo last words >&2; exit 7")
    assert len(str(failure.value)) < 1100


async def test_a_program_ended_by_a_signal_says_which() -> None:
    with pytest.raises(ProgramFailedError, match="was ended by SIGSEGV"):
        await shell("kill -SEGV $$")


async def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    with pytest.raises(ProgramFailedError, match="ended by signal 40"):
        await shell("kill -40 $$")


async def test_a_script_whose_interpreter_is_missing_says_so(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    app = build_app({"ASYNCJOB_EXEC_ALLOW": str(script)})
    with pytest.raises(Fail, match="the interpreter in its first line") as refusal:
        await run_handler(app, "exec", {"argv": [str(script)]})
    assert refusal.value.category == "NotFound"


async def test_a_program_that_is_not_there_is_final(tmp_path: Path) -> None:
    app = build_app({"ASYNCJOB_EXEC_ALLOW": f"/nowhere/program {tmp_path}"})
    with pytest.raises(Fail, match="not in this worker's image") as missing:
        await run_handler(app, "exec", {"argv": ["/nowhere/program"]})
    assert missing.value.category == "NotFound"
    with pytest.raises(Fail, match="may not be run"):
        await run_handler(app, "exec", {"argv": [str(tmp_path)]})


async def test_a_program_over_its_time_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = 'sleep 300 & echo $$ $! >"$1"; wait'
    with pytest.raises(TimedOutError, match=r"took longer than 0\.3 s"):
        await shell(script, str(pids), timeoutSeconds=0.3)
    assert_gone(pids)


async def test_a_program_that_ends_well_only_because_it_was_stopped_has_timed_out() -> None:
    with pytest.raises(TimedOutError):
        await shell('trap "exit 0" TERM; while :; do sleep 0.05; done', timeoutSeconds=0.3)


async def test_what_a_program_leaves_running_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    result = await shell('sleep 300 & echo $! >"$1"; echo done', str(pids))
    assert result.stdout.text == "done\n"
    assert result.seconds < PATIENCE
    assert_gone(pids)


async def test_a_stop_asks_first_and_then_forces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_program.end_group, "__defaults__", (0.3,))
    pids, asked = tmp_path / "pids", tmp_path / "asked"
    script = 'trap "touch $2" TERM; sleep 300 & echo $$ $! >"$1"; while :; do sleep 0.05; done'
    payload = {"argv": [SH, "-c", script, "sh", str(pids), str(asked)]}
    with pytest.raises(StoppedError):
        await run_handler(app_with(), "exec", payload, stopped_once_there_is(pids))
    assert asked.is_file()
    assert_gone(pids)


async def test_a_polite_program_may_clean_up_after_a_stop(tmp_path: Path) -> None:
    ready, cleaned = tmp_path / "ready", tmp_path / "cleaned"
    script = 'trap "touch $2; exit 0" TERM; echo >"$1"; while :; do sleep 0.05; done'
    payload = {"argv": [SH, "-c", script, "sh", str(ready), str(cleaned)]}
    with pytest.raises(StoppedError):
        await run_handler(app_with(), "exec", payload, stopped_once_there_is(ready))
    assert cleaned.is_file()


def stopped_once_there_is(file: Path) -> JobContext:
    """Return a job that is stopped when its program has written the file."""
    job = context()

    def stop() -> None:
        until(lambda: file.exists() and file.read_text(), PATIENCE, lambda: f"no {file}")
        job.stop()

    threading.Thread(target=stop).start()
    return job


def assert_gone(pids: Path) -> None:
    """Not even a zombie: whoever inherits it may take a moment to reap it."""
    for pid in pids.read_text().split():
        process = Path("/proc") / pid
        until(partial(is_gone, process), PATIENCE, partial("{} is left".format, pid))


def is_gone(process: Path) -> bool:
    return not process.exists()


def test_orphans_of_a_program_are_reaped_where_that_is_ours(tmp_path: Path) -> None:
    """As the first process of a container: made so here by becoming their new parent."""
    program = tmp_path / "first.py"
    program.write_text(FIRST_PROCESS)
    pids = tmp_path / "pids"
    start = time.monotonic()
    code = os.spawnv(os.P_WAIT, PYTHON, [PYTHON, str(program), str(pids)])
    assert code == 0
    assert time.monotonic() - start < PATIENCE


FIRST_PROCESS = """
import ctypes, pathlib, subprocess, sys
from asyncjob_worker.builtin.exec_program import end_group, has_ended

SUBREAPER = 36
assert ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0
script = 'sleep 300 & echo $! >"$1"'
process = subprocess.Popen(["/bin/sh", "-c", script, "sh", sys.argv[1]], start_new_session=True)
while not has_ended(process):
    pass
assert end_group(process) == 0
orphan = pathlib.Path(sys.argv[1]).read_text().strip()
sys.exit(pathlib.Path("/proc", orphan).exists())
"""
