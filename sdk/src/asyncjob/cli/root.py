"""The root of all commands: what there is, by section. A new command is a line here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import click

from asyncjob.cli.lazy import LazyGroup, Listed
from asyncjob.cli.place import place_options, taken_from
from asyncjob.cli.world import World

_AT: Final = "asyncjob.cli.commands"

COMMANDS: Final[Mapping[str, Mapping[str, Listed]]] = {
    "Jobs": {
        "submit": Listed(f"{_AT}.submit:submit", "Submit a job, or many."),
        "get": Listed(f"{_AT}.read:get", "Show jobs with all that is known of them."),
        "list": Listed(f"{_AT}.read:list_", "List jobs, newest first."),
        "watch": Listed(f"{_AT}.watch:watch", "Follow jobs as they change."),
        "wait": Listed(f"{_AT}.wait:wait", "Wait until jobs have finished."),
        "history": Listed(f"{_AT}.read:history", "Show what happened to a job."),
        "result": Listed(f"{_AT}.read:result", "Print what a job's handler returned."),
        "cancel": Listed(f"{_AT}.control:cancel", "Cancel jobs; a dead letter is dismissed."),
        "suspend": Listed(f"{_AT}.control:suspend", "Keep jobs from being started."),
        "resume": Listed(f"{_AT}.control:resume", "Let suspended jobs start."),
        "priority": Listed(f"{_AT}.control:priority", "Change which job starts first."),
        "rerun": Listed(f"{_AT}.control:rerun", "Run jobs again, as new jobs."),
    },
    "Dead letters": {
        "redrive": Listed(f"{_AT}.dead_letters:redrive", "Give dead letters a fresh start."),
        "dismiss": Listed(f"{_AT}.dead_letters:dismiss", "Give dead letters up for good."),
    },
    "Around jobs": {
        "queue": Listed(f"{_AT}.queue:queue", "Look at queues, pause and resume them."),
        "cron": Listed(f"{_AT}.cron:cron", "Look at schedules and act on them."),
        "workers": Listed(f"{_AT}.workers:workers", "List the live workers."),
    },
    "Backup": {
        "export": Listed(f"{_AT}.export:export", "Write everything into a file."),
        "restore": Listed(f"{_AT}.restore:restore", "Create what an export holds."),
    },
    "Help": {
        "doctor": Listed(f"{_AT}.doctor:doctor", "Find out what is wrong, and the way out."),
        "completion": Listed(f"{_AT}.completion:completion", "Print a shell's completion script."),
        "version": Listed(f"{_AT}.version:version", "Print the version."),
    },
}


@click.group(
    cls=LazyGroup,
    listed=COMMANDS,
    unlisted={"__complete": Listed(f"{_AT}.completion:complete", "")},
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
@place_options(reads_environment=True)
@click.pass_context
def root(context: click.Context, /, **options: Any) -> None:
    """Durable jobs on Kubernetes: submit them, look at them, act on them.

    Goes straight to the API server with your kubeconfig, or through a gateway with --server.
    """
    context.obj = replace(context.obj or World(), root=taken_from(options))
