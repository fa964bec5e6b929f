"""Options that `make up` and `asyncjob dev` share."""

import re

import click

from asyncjob.names import DEFAULT_QUEUE

PORT = click.IntRange(1, 65535)
WORKERS = click.IntRange(1, 16)
_IS_QUEUE = re.compile("[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""Names that fit into that of a Pod, too."""


def _queues(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    queues = value.split(",")
    if not all(map(_IS_QUEUE.fullmatch, queues)) or len(set(queues)) != len(queues):
        raise click.BadParameter(f"{value!r} is no list of different queues, such as default,mail")
    return value


QUEUES = click.option(
    "--queues",
    default=DEFAULT_QUEUE,
    show_default=True,
    callback=_queues,
    help="Separated by commas; each has workers of its own.",
)
SLOTS = click.option(
    "--slots",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Jobs that a worker runs at a time.",
)
