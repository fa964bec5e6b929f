"""The options of `asyncjob-worker run`, by what they are about. The reference page lists them.

A further part of the worker adds a group of its own here or decorates the command itself; what is
given reaches `Settings` by name.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from asyncjob.models.base import QUEUE_PATTERN
from asyncjob_worker.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[F], F]

PREFIX: Final = "ASYNCJOB_WORKER"
DEFAULTS: Final = Settings()
SECONDS: Final = click.FloatRange(min=0)
COUNT: Final = click.IntRange(min=0)
MAX_LABEL_LENGTH: Final = 63


def _check_label(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Refuse a name of a queue or namespace that the API server would refuse."""
    if value is None or (len(value) <= MAX_LABEL_LENGTH and re.fullmatch(QUEUE_PATTERN, value)):
        return value
    allowed = "lower-case letters, digits and '-', and it begins and ends without '-'"
    raise click.BadParameter(f"{value!r}: allowed are at most {MAX_LABEL_LENGTH} {allowed}.")


def _option(flag: str, **details: Any) -> Callable[[F], F]:
    return click.option(flag, **{"show_default": True, **details})


SERVING: Final = (
    _option("--queue", callback=_check_label, default=DEFAULTS.queue, help="Queue to serve."),
    _option(
        "--concurrency",
        type=COUNT,
        default=DEFAULTS.concurrency,
        show_default="usable CPUs",
        help="Jobs at a time; by default as many as the process may use CPUs, within its "
        "container's quota.",
    ),
    _option(
        "--max-free-json",
        type=COUNT,
        default=DEFAULTS.max_free_json,
        help="Largest checkpoint or result kept in the job, in bytes.",
    ),
    _option(
        "--jobs-per-process",
        type=COUNT,
        default=DEFAULTS.jobs_per_process,
        help="Jobs after which a handler's own process is replaced; 0: any number.",
    ),
)

STOPPING: Final = (
    _option(
        "--grace",
        type=SECONDS,
        default=DEFAULTS.grace,
        help="Seconds that running handlers get after SIGTERM.",
    ),
    _option(
        "--stop-wait",
        type=SECONDS,
        default=DEFAULTS.stop_wait,
        help="Seconds that a handler gets to stop before it is abandoned, or killed if it has its "
        "own process; after a cancel it has the job's own `cancelGraceSeconds` instead.",
    ),
)

HEALTH: Final = (
    _option(
        "--health-port",
        type=click.IntRange(0, 65535),
        default=DEFAULTS.health_port,
        help="Port of /livez, /readyz and /metrics; 0: none.",
    ),
    _option(
        "--health-host",
        default=DEFAULTS.health_host,
        help="Address they are served on. In a pod the kubelet and Prometheus come from outside; "
        "`::` where there is no IPv4.",
    ),
    _option(
        "--stall-limit",
        type=SECONDS,
        default=DEFAULTS.stall_limit,
        help="Seconds an event loop may stand still before /livez fails; 0: for ever.",
    ),
)

CLUSTER: Final = (
    _option(
        "--kubeconfig",
        type=click.Path(),
        show_default="as kubectl",
        help="Cluster to use: else `KUBECONFIG`, the pod's own, `~/.kube/config`.",
    ),
    _option(
        "--namespace",
        callback=_check_label,
        show_default="the pod's",
        help="Namespace to serve: else `POD_NAMESPACE`, the kubeconfig's.",
    ),
    _option(
        "--pod-name",
        envvar="POD_NAME",
        show_default="required",
        help="Name of the pod the worker runs in.",
    ),
    _option(
        "--pod-uid",
        envvar="POD_UID",
        show_default="required",
        help="Its UID; both from the downward API.",
    ),
    _option(
        "--allow-unenforced",
        is_flag=True,
        show_default="off",
        help="Run even where the API server does not enforce ownership.",
    ),
)

RUNNING: Final = (
    _option(
        "--reload",
        is_flag=True,
        show_default="off",
        help="For development: start the worker anew whenever a Python file beside the app "
        "changes.",
    ),
    _option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        help="`text` or `json`.",
    ),
)


def all_options(command: F) -> F:
    """Give a command all options of the worker, in the order of this page."""
    for option in reversed((*SERVING, *STOPPING, *HEALTH, *CLUSTER, *RUNNING)):
        command = option(command)
    return command


class TerseCommand(click.Command):
    """Says what is wrong with its options in one line, without the usage."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; raises UsageError that knows of no context to show."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            words = " ".join(error.format_message().split())
            raise click.UsageError(f"{words} See `asyncjob-worker run --help`.") from error


@dataclass(frozen=True, slots=True)
class DocumentedOption:
    """One option as the reference shows it; `default` is empty where there is none."""

    flag: str
    variable: str
    default: str
    meaning: str


def documented_options(command: click.Command) -> Iterator[DocumentedOption]:
    """Return what the reference says of each option of a command."""
    for option in command.params:
        if isinstance(option, click.Option):
            variable = option.envvar or f"{PREFIX}_{(option.name or '').upper()}"
            default = _default_text(option)
            yield DocumentedOption(option.opts[0], str(variable), default, option.help or "")


def _default_text(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    number = isinstance(option.default, float)
    return f"`{option.default:g}`" if number else f"`{option.default}`"
