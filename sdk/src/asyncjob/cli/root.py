"""The root of all commands: what there is, by section. A new command is a line here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import click

from asyncjob.cli.lazy import LazyCommand, LazyGroup
from asyncjob.cli.place import connection_options, pop_connection_options
from asyncjob.cli.world import CliContext

_COMMANDS_PACKAGE: Final = "asyncjob.cli.commands"

COMMANDS: Final[Mapping[str, Mapping[str, LazyCommand]]] = {
    "Jobs": {
        "submit": LazyCommand(f"{_COMMANDS_PACKAGE}.submit:submit", "Submit a job, or many."),
        "get": LazyCommand(
            f"{_COMMANDS_PACKAGE}.read:get", "Show jobs with all that is known of them."
        ),
        "list": LazyCommand(f"{_COMMANDS_PACKAGE}.read:list_", "List jobs, newest first."),
        "watch": LazyCommand(f"{_COMMANDS_PACKAGE}.watch:watch", "Follow jobs as they change."),
        "wait": LazyCommand(f"{_COMMANDS_PACKAGE}.wait:wait", "Wait until jobs have finished."),
        "history": LazyCommand(f"{_COMMANDS_PACKAGE}.read:history", "Show what happened to a job."),
        "result": LazyCommand(
            f"{_COMMANDS_PACKAGE}.read:result", "Print what a job's handler returned."
        ),
        "cancel": LazyCommand(
            f"{_COMMANDS_PACKAGE}.control:cancel", "Cancel jobs; a dead letter is dismissed."
        ),
        "suspend": LazyCommand(
            f"{_COMMANDS_PACKAGE}.control:suspend", "Keep jobs from being started."
        ),
        "resume": LazyCommand(f"{_COMMANDS_PACKAGE}.control:resume", "Let suspended jobs start."),
        "priority": LazyCommand(
            f"{_COMMANDS_PACKAGE}.control:priority", "Change which job starts first."
        ),
        "rerun": LazyCommand(f"{_COMMANDS_PACKAGE}.control:rerun", "Run jobs again, as new jobs."),
    },
    "Dead letters": {
        "redrive": LazyCommand(
            f"{_COMMANDS_PACKAGE}.dead_letters:redrive", "Give dead letters a fresh start."
        ),
        "dismiss": LazyCommand(
            f"{_COMMANDS_PACKAGE}.dead_letters:dismiss", "Give dead letters up for good."
        ),
    },
    "Around jobs": {
        "queue": LazyCommand(
            f"{_COMMANDS_PACKAGE}.queue:queue", "Look at queues, pause and resume them."
        ),
        "cron": LazyCommand(f"{_COMMANDS_PACKAGE}.cron:cron", "Look at schedules and act on them."),
        "workers": LazyCommand(f"{_COMMANDS_PACKAGE}.workers:workers", "List the live workers."),
    },
    "Backup": {
        "export": LazyCommand(
            f"{_COMMANDS_PACKAGE}.export:export", "Write everything into a file."
        ),
        "restore": LazyCommand(
            f"{_COMMANDS_PACKAGE}.restore:restore", "Create what an export holds."
        ),
    },
    "Help": {
        "doctor": LazyCommand(
            f"{_COMMANDS_PACKAGE}.doctor:doctor", "Find out what is wrong, and the way out."
        ),
        "completion": LazyCommand(
            f"{_COMMANDS_PACKAGE}.completion:completion", "Print a shell's completion script."
        ),
        "version": LazyCommand(f"{_COMMANDS_PACKAGE}.version:version", "Print the version."),
    },
}


@click.group(
    cls=LazyGroup,
    listed=COMMANDS,
    unlisted={"__complete": LazyCommand(f"{_COMMANDS_PACKAGE}.completion:complete", "")},
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
@connection_options(reads_environment=True)
@click.pass_context
def root(context: click.Context, /, **options: Any) -> None:
    """Durable jobs on Kubernetes: submit them, look at them, act on them.

    Goes straight to the API server with your kubeconfig, or through a gateway with --server.
    """
    context.obj = replace(context.obj or CliContext(), root=pop_connection_options(options))
