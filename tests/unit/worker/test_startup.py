"""Starting a worker: how many slots, which app, and one clear line for each mistake."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from asyncjob.app import WorkerApp
from asyncjob.errors import ConfigError, message_of
from asyncjob_worker import cli
from asyncjob_worker.app_loader import app_folder, child_command, load_app
from asyncjob_worker.cli import main
from asyncjob_worker.settings import Settings, identify, usable_cpus

APP = """
from asyncjob import JobContext, WorkerApp
app = WorkerApp()
empty = WorkerApp()
number = 7

@app.handler("t")
async def t(job: JobContext) -> None: ...
"""
NO_CLUSTER = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}]
current-context: x
"""
POD = {"POD_NAME": "p", "POD_UID": "u", "KUBECONFIG": "/nonexistent/kubeconfig"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def test_an_app_is_found_in_the_current_folder(folder: Path) -> None:
    module(folder, "good_app", APP)
    assert set(load_app("good_app:app").handlers) == {"t"}
    assert set(load_app("good_app").handlers) == {"t"}


MISTAKES = {
    "nowhere:app": "cannot import nowhere: no module named 'nowhere'",
    "nowhere.sub:app": "cannot import nowhere.sub: no module named 'nowhere'",
    "bad_names.sub:app": "cannot import bad_names.sub: no module named 'bad_names.sub'",
    "bad_names:other": "module bad_names has no 'other'",
    "bad_names:number": "bad_names:number is a int, not a WorkerApp",
    "bad_names:empty": "bad_names:empty has no handlers: register one with @app.handler",
    "broken_import:app": "no module named 'nonexistent_library' (FOLDER/broken_import.py:2)",
    "broken_name:app": "ImportError: cannot import name 'nothing' from 'json'",
    "broken_syntax:app": "SyntaxError: invalid syntax (FOLDER/broken_syntax.py:2)",
    "broken_indent:app": "IndentationError: unexpected indent (FOLDER/broken_indent.py:2)",
    "broken_code:app": "ZeroDivisionError: division by zero (FOLDER/broken_code.py:4)",
    "broken_words:app": "ValueError: several lines (FOLDER/broken_words.py:1)",
    "broken_model:app": "(FOLDER/broken_model.py:4)",
    "leaves:app": "it calls sys.exit(5) (FOLDER/leaves.py:2)",
    "two_handlers:app": "two handlers for job type 't' (FOLDER/two_handlers.py:9)",
    "bad_handler:app": "it takes 0 parameters",
    "no_resource:app": "no resource of type float",
    "bad_type:app": "'-' is not a job type",
    ":app": "':app' names no module: give it as module:attribute",
    "..up:app": "'..up:app' names no module",
}

MODULES = {
    "bad_names": APP,
    "broken_import": "\nimport nonexistent_library",
    "broken_name": "\nfrom json import nothing",
    "broken_syntax": "\ndef f(:",
    "broken_indent": "x = 1\n  y = 2",
    "broken_code": "def f():\n    1 / 0\n\nf()",
    "broken_words": r"raise ValueError('several\nlines')",
    "broken_model": "import pydantic\nclass M(pydantic.BaseModel):\n    x: int\nM(x='a')",
    "leaves": "import sys\nsys.exit(5)",
    "two_handlers": APP + '@app.handler("t")\nasync def u(job): ...',
    "bad_handler": APP + '@app.handler("u")\nasync def u(): ...',
    "no_resource": APP + '@app.handler("u")\nasync def u(job, *, x: float): ...',
    "bad_type": APP + '@app.handler("-")\nasync def u(job): ...',
}


@pytest.mark.parametrize("target", MISTAKES)
def test_each_mistake_is_one_clear_line_without_a_traceback(folder: Path, target: str) -> None:
    for name, text in MODULES.items():
        module(folder, name, text)
    result = run(target)
    assert result.exit_code == 1
    [line] = result.output.splitlines()
    assert line.startswith("Error: ")
    assert MISTAKES[target].replace("FOLDER", str(folder)) in line
    with pytest.raises(ConfigError) as error:
        load_app(target)
    assert f"Error: {message_of(error.value)}" == line


def test_the_folder_of_an_app_is_found_without_importing_it(folder: Path) -> None:
    module(folder, "never_imported", "raise RuntimeError")
    (folder / "parcel").mkdir()
    (folder / "parcel" / "__init__.py").write_text("raise RuntimeError")
    assert app_folder("never_imported:app") == folder
    assert app_folder("parcel.inner:app") == folder / "parcel"
    with pytest.raises(ConfigError, match="no module named 'nowhere'"):
        app_folder("nowhere.sub:app")


def run(*arguments: str, **env: str | None) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], env={**POD, **env})


def test_without_a_pod_the_command_says_what_is_missing() -> None:
    result = run("x:app", POD_NAME=None)
    assert result.exit_code == 1
    assert result.output.startswith("Error: POD_NAME and POD_UID are not set")


def test_without_a_cluster_the_command_says_what_to_do(folder: Path) -> None:
    module(folder, "some_app", APP)
    result = run("some_app:app")
    assert result.exit_code == 1
    assert "no cluster is configured" in result.output
    assert "`asyncjob dev`" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["x:app", "--concurrency=-1"],
        ["x:app", "--grace=-1"],
        ["x:app", "--log-format=xml"],
        ["x:app", "--health-port=70000"],
        ["x:app", "--stall-limit=soon"],
        ["x:app", "--no-such-option"],
        ["x:app", "--queue"],
        ["x:app", "--queue=Mail"],
        ["x:app", "--namespace=a.b"],
        ["x:app", "y:app"],
    ],
    ids=" ".join,
)
def test_an_impossible_option_is_one_clear_line(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith("Error: ")
    assert line.endswith("See `asyncjob-worker run --help`.")


def test_a_health_port_that_is_taken_is_one_clear_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_exit_now", sys.exit)
    module(folder, "some_app", APP)
    (folder / "kubeconfig").write_text(NO_CLUSTER)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = (f"--health-port={port}", "--health-host=127.0.0.1")
        result = run("some_app:app", *options, KUBECONFIG=str(folder / "kubeconfig"))
    assert result.exit_code == 1
    [line] = result.output.splitlines()
    assert line.startswith(f"Error: cannot serve health and metrics on 127.0.0.1 port {port}: ")


def test_reloading_without_what_watches_files_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    result = run("x:app", "--reload")
    assert result.exit_code == 1
    assert result.output == (
        "Error: --reload needs watchfiles: install asyncjob-worker[reload] "
        "(asyncjob explain configuration)\n"
    )


def test_a_reloading_worker_is_a_child_in_a_hurry() -> None:
    arguments = ["run", "--reload", "x:app", "--grace=100"]
    command = child_command(arguments, Settings(grace=100.0, stop_grace_seconds=0.5))
    assert command[1:] == [
        *("-m", "asyncjob_worker", "run", "x:app", "--grace=100"),
        *("--grace=2", "--stop-wait=0.5"),
    ]


def test_options_have_environment_variables(folder: Path) -> None:
    result = run("x:app", ASYNCJOB_WORKER_CONCURRENCY="many")
    assert result.exit_code == 2
    assert "concurrency" in result.output


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 4096),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 4096),
        ({"cpu.max": "nonsense"}, 4096),
        ({}, 4096),
    ],
)
def test_the_usable_cpus_are_those_of_the_containers_quota(
    tmp_path: Path, files: dict[str, str], most: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    all_of_them = usable_cpus(tmp_path / "none")
    assert usable_cpus(tmp_path) == min(all_of_them, most)


def test_concurrency_is_as_told_or_the_usable_cpus() -> None:
    assert Settings(concurrency=7).slots() == 7
    assert Settings().slots() == usable_cpus()


def test_what_handlers_own_processes_need_is_handed_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(folder, "isolating_app", APP)
    seen: list[Settings] = []

    async def serve(app: WorkerApp, settings: Settings, *_: object) -> None:
        seen.append(settings)

    monkeypatch.setattr(cli, "_serve_and_exit", serve)
    monkeypatch.setattr(cli, "configure_logging", lambda _: None)
    options = ("--jobs-per-process=3", "--log-format=json")
    assert run("isolating_app:app", *options).exit_code == 0
    told = (seen[0].app, seen[0].jobs_per_process, seen[0].log_format)
    assert told == ("isolating_app:app", 3, "json")


HANGS = """
import asyncio, atexit, sys, threading, types
import uvloop
from asyncjob_worker import cli

async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def access(*_):
    return None

async def serve(*_):
    threading.Thread(target=threading.Event().wait).start()
    for _ in range(40):
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0.1)
    END

cli.load_access, cli._serve = access, serve
atexit.register(lambda: print("last call"))
given = {"kubeconfig": None, "namespace": None}
uvloop.run(cli._serve_and_exit(None, None, None, given))
"""


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ("return 0", 0, ""),
        ("return 3", 3, ""),
        ("raise RuntimeError('unforeseen')", 1, "RuntimeError: unforeseen"),
        ("raise cli.AsyncJobError('no policy')", 1, "Error: no policy"),
    ],
)
def test_the_process_ends_whatever_of_its_handlers_still_runs(
    end: str, code: int, says: str
) -> None:
    """Threads of `asyncio.to_thread` and others, and tasks that ignore being cancelled."""
    command = [sys.executable, "-c", HANGS.replace("END", end)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert ended.returncode == code
    assert says in ended.stderr
    assert ended.stdout == "last call\n"


def test_no_two_starts_of_a_process_share_an_identity() -> None:
    assert identify("p", "u").worker != identify("p", "u").worker


def test_sigterm_ends_a_worker_that_is_still_importing_its_app(folder: Path) -> None:
    """To the first process of a container it means nothing unless a handler is set."""
    module(folder, "slow_app", "import time\nprint('importing', flush=True)\ntime.sleep(50)")
    command = [sys.executable, "-m", "asyncjob_worker", "run", "slow_app"]
    env = {**os.environ, **POD}
    with subprocess.Popen(
        command, env=env, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout
        assert worker.stdout.readline() == "importing\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
