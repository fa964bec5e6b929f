"""The entry point of the process and the root command.

Which commands exist, by section of the help, and how every error becomes one line on stderr and a
documented exit code. A new command is a line in `COMMANDS`.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

import click

from asyncjob.cli.command_classes import LazyCommand, LazyGroup, PluginCommand
from asyncjob.cli.connection import connection_options, pop_connection_options
from asyncjob.cli.context import CliContext
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.tables import one_line
from asyncjob.errors import AsyncJobError
from asyncjob.programs.interrupts import restore_sigint

KUBECTL_PLUGIN: Final = "kubectl-asyncjob"
DEBUG_VARIABLE: Final = "ASYNCJOB_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    restore_sigint()
    sys.exit(run(arguments, program_name(sys.argv[0])))


def program_name(path: str) -> str:
    """Return the name that the program was called by."""
    return "kubectl asyncjob" if PurePath(path).stem == KUBECTL_PLUGIN else "asyncjob"


def run(arguments: Sequence[str] | None, name: str, cli: CliContext | None = None) -> int:
    """Run the command line and return its exit code."""
    stdout = sys.stdout
    try:
        code = root.main(arguments, prog_name=name, standalone_mode=False, obj=cli)
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_for_closed_pipe()
    except SystemExit:
        # So click ends for a closed pipe as well, with stdout replaced, and in no other case.
        if sys.stdout is stdout:
            raise
        return _end_for_closed_pipe()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - people are shown no traceback
        return _report_error(error, name)
    return code if isinstance(code, int) else ExitCode.OK


def _end_for_closed_pipe() -> int:
    """End silently: the reader of stdout has closed it. Keep Python from failing to flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return ExitCode.OK


def _report_error(error: BaseException, name: str) -> int:
    match error:
        case click.Abort() | KeyboardInterrupt():
            click.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        case click.UsageError():
            return _report_usage_error(error, name)
        case click.ClickException():
            error.show()
            return error.exit_code
        case AsyncJobError():
            return _report_known_error(error, name)
        case _:
            return _report_unexpected_error(error)


def _report_unexpected_error(error: BaseException) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    what = one_line(f"{type(error).__name__}: {error}")
    out = f"this should not happen; {DEBUG_VARIABLE}=1 shows where; asyncjob explain unexpected"
    click.echo(f"error: {what} ({out})", err=True)
    return ExitCode.FAILED


def _report_usage_error(error: click.UsageError, name: str) -> int:
    called = error.ctx.command_path if error.ctx else name
    message = one_line(error.format_message().rstrip("."))
    click.echo(f"error: {message} ({called} --help)", err=True)
    return ExitCode.USAGE


def _report_known_error(error: AsyncJobError, name: str) -> int:
    from asyncjob.cli.error_messages import error_message, exit_code_for

    click.echo(f"error: {error_message(error, name)}", err=True)
    return exit_code_for(error)


def _command(where: str, summary: str) -> LazyCommand:
    return LazyCommand(f"asyncjob.cli.commands.{where}", summary)


COMMANDS: Final[Mapping[str, Mapping[str, LazyCommand | PluginCommand]]] = {
    "Jobs": {
        "submit": _command("submit:submit", "Submit one or more jobs."),
        "get": _command("read:get", "Show jobs in detail."),
        "list": _command("read:list_", "List jobs, newest first."),
        "watch": _command("watch:watch", "Follow jobs as they change."),
        "wait": _command("wait:wait", "Wait until jobs have finished."),
        "history": _command("read:history", "Show the changes of a job."),
        "result": _command("read:result", "Print the result of a job."),
        "cancel": _command("control:cancel", "Cancel jobs; a dead letter is dismissed."),
        "suspend": _command("control:suspend", "Keep jobs from being started."),
        "resume": _command("control:resume", "Let suspended jobs start."),
        "priority": _command("control:priority", "Set the priority of jobs."),
        "signal": _command("signal:signal", "Send a job a signal that it waits for."),
        "rerun": _command("control:rerun", "Run jobs again, as new jobs."),
    },
    "Dead letters": {
        "redrive": _command("dead_letters:redrive", "Run dead letters again, with fresh retries."),
        "dismiss": _command("dead_letters:dismiss", "Give up dead letters."),
    },
    "Around jobs": {
        "queue": _command("queue:queue", "Show queues, pause and resume them."),
        "array": _command("array.group:array", "Run a handler over many items."),
        "cron": _command("cron:cron", "Show and control cron jobs."),
        "workers": _command("workers:workers", "List the live workers."),
    },
    "Development": {
        "dev": PluginCommand("dev", "asyncjob-dev", "Run all that jobs need on this machine."),
    },
    "Backup": {
        "export": _command("export:export", "Write all objects to a file."),
        "restore": _command("restore:restore", "Restore an export."),
    },
    "Help": {
        "audit": _command("audit.group:audit", "Record what happens to jobs, and judge it."),
        "doctor": _command("doctor:doctor", "Find problems and suggest fixes."),
        "explain": _command("help.explain:explain", "Explain the code of an error or a reason."),
        "completion": _command("completion:completion", "Print a completion script."),
        "version": _command("help.version:version", "Print the version."),
    },
}


@click.group(
    cls=LazyGroup,
    listed=COMMANDS,
    unlisted={"__complete": _command("completion:complete", "")},
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
@connection_options(reads_environment=True)
@click.pass_context
def root(context: click.Context, /, **options: Any) -> None:
    """Submit, inspect and control durable jobs on Kubernetes.

    Connects to the API server with your kubeconfig, or to a gateway with --server.
    """
    context.obj = replace(context.obj or CliContext(), root=pop_connection_options(options))
