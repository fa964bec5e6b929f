"""What a shell offers for a name: the names that there are where the command would go."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from asyncjob.cli.place import Place
from asyncjob.cli.world import World
from asyncjob.errors import AsyncJobError

if TYPE_CHECKING:
    from asyncjob.client.interface import Jobs

Offer = Callable[["Jobs", str], Iterable[str]]
"""Returns names that may begin so, of one kind."""

MOST: Final = 100
SECONDS: Final = 8.0
"""Somebody has pressed Tab and waits. Where the cluster takes longer, nothing is offered."""


def jobs(there: "Jobs", begin: str) -> Iterator[str]:
    """Yield the names of jobs, newest first."""
    from asyncjob.rest.selection import Selection

    return (job.id for job in there.list(Selection(text=begin or None)))


def queues(there: "Jobs", _begin: str) -> Iterator[str]:
    """Yield the names of queues."""
    return (queue.name for queue in there.queues())


def schedules(there: "Jobs", _begin: str) -> Iterator[str]:
    """Yield the names of schedules."""
    return (cron.name for cron in there.cron_jobs())


def offered(context: click.Context, offer: Offer, begin: str) -> list[CompletionItem]:
    """Return the names that begin so; none where the cluster does not tell, for whatever reason."""
    world: World = context.find_root().obj or World()
    try:
        # The clients' imports are no wait for a cluster.
        with world.connect(_place(context).checked()) as there, _within(SECONDS):
            found = (name for name in offer(there, begin) if name.startswith(begin))
            return [CompletionItem(name) for name in islice(dict.fromkeys(found), MOST)]
    except (AsyncJobError, click.UsageError, TimeoutError):
        return []


def of_queues(context: click.Context, _: click.Parameter, begin: str) -> list[CompletionItem]:
    """Offer the names of queues, for an option."""
    return offered(context, queues, begin)


def _place(context: click.Context | None) -> Place:
    """Return what was said so far: before the command's name, and after it."""
    if context is None:
        return Place()
    said = {part.name: context.params.get(part.name) for part in fields(Place)}
    return Place(**said).over(_place(context.parent))


@contextmanager
def _within(seconds: float) -> Iterator[None]:
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
