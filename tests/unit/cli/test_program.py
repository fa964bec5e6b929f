"""The program as a whole: fast help, every command there, completion, closed pipes."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

import click
import pytest

from asyncjob.cli.commands.completion import kubectl_completions
from asyncjob.cli.entry import COMMANDS, program_name, root, run
from asyncjob.cli.input import resource_names
from asyncjob.client.errors import NotAllowedError
from support.in_memory.fake_jobs import a_cron, a_job, a_queue
from support.parts.cli_shell import Shell
from support.processes.signals import ignoring

LISTED = {name: listed for part in COMMANDS.values() for name, listed in part.items()}
HEAVY = {"pydantic", "aiohttp", "kubernetes", "httpx", "rich", "yaml", "asyncio", "structlog"}


def commands() -> dict[str, click.Command]:
    """Return all commands by what one types."""
    context = click.Context(root)
    found = {name: root.get_command(context, name) for name in root.list_commands(context)}
    nested = {
        f"{name} {sub}": command
        for name, group in found.items()
        if isinstance(group, click.Group)
        for sub, command in group.commands.items()
    }
    return {name: command for name, command in {**found, **nested}.items() if command}


@pytest.mark.parametrize("name", LISTED)
def test_every_command_of_the_help_is_there_under_its_name(name: str) -> None:
    command = commands()[name]
    assert command.name == name
    assert command.get_short_help_str(200)


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_explains_itself_and_all_its_options(shell: Shell, name: str) -> None:
    text = shell.ok(*name.split(), "--help")
    assert text.startswith(f"Usage: asyncjob {name}")
    for option in commands()[name].params:
        assert not isinstance(option, click.Option) or option.help, option.name


def test_the_help_imports_nothing_that_is_slow() -> None:
    script = (
        "import sys; from asyncjob.cli.entry import run; run(['--help'], 'asyncjob');"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert set(done.stderr.decode().split()) & HEAVY == set()
    assert b"Dead letters:" in done.stdout


def test_it_is_installed_under_both_names() -> None:
    scripts = importlib.metadata.distribution("asyncjob-sdk").entry_points
    assert {one.name for one in scripts if one.value == "asyncjob.cli:main"} == {
        "asyncjob",
        "kubectl-asyncjob",
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/bin/asyncjob", "asyncjob"),
        ("/bin/kubectl-asyncjob", "kubectl asyncjob"),
        ("C:/bin/kubectl-asyncjob.exe", "kubectl asyncjob"),
        ("/x/asyncjob/cli/__main__.py", "asyncjob"),
    ],
)
def test_it_calls_itself_as_it_was_called(path: str, name: str) -> None:
    assert program_name(path) == name


def test_kubectl_is_offered_commands_options_and_phases() -> None:
    assert [line.split("\t")[0] for line in kubectl_completions(root, ["wa"])] == [
        "watch",
        "wait",
        ":4",
    ]
    assert "--queue" in [
        line.split("\t")[0] for line in kubectl_completions(root, ["list", "--qu"])
    ]
    assert kubectl_completions(root, ["list", "--phase", "d"]) == ["DeadLetter", ":4"]
    assert kubectl_completions(root, ["queue", "pa"])[0].split("\t")[0] == "pause"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish", "kubectl"])
def test_each_shell_has_its_script(shell: Shell, name: str) -> None:
    assert "asyncjob" in shell.ok("completion", name)


def test_kubectls_script_asks_the_program(shell: Shell) -> None:
    assert 'exec asyncjob __complete "$@"' in shell.ok("completion", "kubectl")
    assert shell.ok("__complete", "queue", "to").splitlines()[1] == ":4"
    assert "--help" in shell.ok("__complete", "--he")


def test_whoever_stops_reading_is_told_nothing() -> None:
    script = (
        "from asyncjob.cli.entry import main; import sys; sys.argv[0] = 'asyncjob';"
        "from asyncjob.cli.commands.help import version;"
        "version.__version__ = 'x' * 1_000_000; main(['version'])"
    )
    command = f'"{sys.executable}" -c "{script}" | head -c 10; echo " ${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"asyncjob x 0\n", b"")


@pytest.mark.parametrize("words", [["explain"], ["explain", "-o", "json"], ["--help"]])
def test_what_nobody_reads_ends_silently(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    script = f"from asyncjob.cli.entry import main; main({words})"
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_command_that_ends_the_process_itself_does_so_with_its_own_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root, "main", lambda *_, **__: sys.exit(7))
    with pytest.raises(SystemExit, match="7"):
        run(["version"], "asyncjob")


def test_ctrl_c_ends_a_command_even_if_it_was_started_with_that_ignored() -> None:
    script = (
        "import signal; from asyncjob.cli import entry;"
        "entry.root.main = lambda *_, **__: signal.raise_signal(signal.SIGINT); entry.main([])"
    )
    with ignoring(signal.SIGINT):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")


def test_names_that_there_are_are_offered_where_the_command_would_go(shell: Shell) -> None:
    shell.jobs.add(a_job("report-1"), a_job("report-2"), a_job("mail-1"))
    shell.jobs.all_queues["default"] = a_queue("default")
    shell.jobs.crons["nightly"] = a_cron("nightly")
    said = shell.ok("__complete", "--server=http://gateway", "get", "-n", "team", "report").split()
    assert said == ["report-1", "report-2", ":4"]
    assert (shell.places[-1].server, shell.places[-1].namespace) == ("http://gateway", "team")
    assert shell.ok("__complete", "queue", "pause", "d").split() == ["default", ":4"]
    assert shell.ok("__complete", "list", "--queue", "d").split() == ["default", ":4"]
    assert shell.ok("__complete", "cron", "get", "").split() == ["nightly", ":4"]
    assert shell.ok("__complete", "submit", "t", "--name", "").split() == [":4"]


def test_a_cluster_that_does_not_tell_offers_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> NoReturn:
        raise NotAllowedError("not you")

    def silent(*_: object) -> NoReturn:
        while True:
            time.sleep(60)

    monkeypatch.setattr(resource_names, "TIMEOUT_SECONDS", 0.05)
    for answer in (refused, silent):
        monkeypatch.setattr(shell.jobs, "list", answer)
        assert shell.ok("__complete", "get", "re").split() == [":4"]
    assert shell.ok("__complete", "get", "-n", "no name", "re").split() == [":4"]
