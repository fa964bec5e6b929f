"""Names of jobs, queues, cron jobs and arrays.

The parameter type that accepts them, with or without their kind before them, and what a shell
offers when somebody presses Tab.
"""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from asyncjob.cli.connection import ConnectionOptions
from asyncjob.cli.context import CliContext
from asyncjob.errors import AsyncJobError

if TYPE_CHECKING:
    from asyncjob.client.api import Jobs

NameSource = Callable[["Jobs", str], Iterable[str]]
"""Returns names that may begin so, of one kind."""

MAX_OFFERED: Final = 100
TIMEOUT_SECONDS: Final = 8.0
"""Somebody has pressed Tab and waits. Where the cluster takes longer, nothing is offered."""


def job_names(client: "Jobs", prefix: str) -> Iterator[str]:
    """Yield the names of jobs, newest first."""
    from asyncjob.rest.listing import Selection

    return (job.id for job in client.list(Selection(text=prefix or None)))


def queue_names(client: "Jobs", _prefix: str) -> Iterator[str]:
    """Yield the names of queues."""
    return (queue.name for queue in client.queues())


def cron_job_names(client: "Jobs", _prefix: str) -> Iterator[str]:
    """Yield the names of cron jobs."""
    return (cron.name for cron in client.cron_jobs())


def array_names(client: "Jobs", _prefix: str) -> Iterator[str]:
    """Yield the names of arrays, newest first."""
    return (array.name for array in client.arrays())


def complete_names(context: click.Context, source: NameSource, prefix: str) -> list[CompletionItem]:
    """Return the names that begin so; none where the cluster does not tell, for whatever reason."""
    world: CliContext = context.find_root().obj or CliContext()
    try:
        # The clients' imports are no wait for a cluster.
        with (
            world.connect(_connection_so_far(context).validated()) as there,
            _time_limit(TIMEOUT_SECONDS),
        ):
            found = (name for name in source(there, prefix) if name.startswith(prefix))
            return [CompletionItem(name) for name in islice(dict.fromkeys(found), MAX_OFFERED)]
    except (AsyncJobError, click.UsageError, TimeoutError):
        return []


def complete_queue_names(
    context: click.Context, _: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Offer the names of queues, for an option."""
    return complete_names(context, queue_names, prefix)


def _connection_so_far(context: click.Context | None) -> ConnectionOptions:
    """Return what was said so far: before the command's name, and after it."""
    if context is None:
        return ConnectionOptions()
    given = {part.name: context.params.get(part.name) for part in fields(ConnectionOptions)}
    return ConnectionOptions(**given).with_defaults(_connection_so_far(context.parent))


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError

    handler = signal.signal(signal.SIGALRM, late)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


class NameParam(click.ParamType[str]):
    """A name, with or without its kind before it, as `kubectl get -o name` prints it."""

    name = "name"

    def __init__(self, source: NameSource | None = job_names) -> None:
        self._source = source

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - as click calls it
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names there are that begin so."""
        return complete_names(ctx, self._source, incomplete) if self._source else []

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the bare name."""
        bare = value.rpartition("/")[2].strip()
        if not bare or any(char.isspace() for char in bare):
            self.fail(f"{value!r} is not a valid name", param, ctx)
        return bare


def current_program() -> str:
    """Return how the running command was called, for hints: `asyncjob`, `kubectl asyncjob`."""
    return click.get_current_context().find_root().info_name or "asyncjob"


def unique(names: Iterable[str]) -> list[str]:
    """Return the names, each once, in their order."""
    return list(dict.fromkeys(names))
