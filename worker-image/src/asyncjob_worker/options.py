"""The options of `asyncjob-worker run`, grouped by what they configure.

An option's name is the name of its field in `Settings`. Errors in an option are reported before
anything starts. The reference page is generated from these definitions.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
import orjson

from asyncjob.errors import message_of
from asyncjob.models.base import QUEUE_PATTERN
from asyncjob.offload import Address, AddressError, DriverMissingError
from asyncjob.offload.store import MAX_OBJECT_BYTES, REQUEST_TIMEOUT_SECONDS, check_driver
from asyncjob.programs.options import (
    PORT,
    POSITIVE_SECONDS,
    SECONDS,
    log_format_option,
    program_option,
    with_options,
)
from asyncjob_worker.settings import OffloadSettings, Settings

PREFIX: Final = "ASYNCJOB_WORKER"

DEFAULTS: Final = Settings()
COUNT: Final = click.IntRange(min=0)
MAX_LABEL_LENGTH: Final = 63

_MAX_URL_LENGTH: Final = 1024
"""Leaves room for the path of a result that is appended to it."""


def _check_label(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Refuse a queue or namespace name that the API server would refuse."""
    if value is None or (len(value) <= MAX_LABEL_LENGTH and re.fullmatch(QUEUE_PATTERN, value)):
        return value
    allowed = "lower-case letters, digits and '-', and it begins and ends without '-'"
    raise click.BadParameter(f"{value!r}: allowed are at most {MAX_LABEL_LENGTH} {allowed}.")


_option = functools.partial(program_option, PREFIX)

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
        "--park",
        type=click.Choice(("auto", "always", "never")),
        default=DEFAULTS.park,
        help="Whether a handler that sleeps gives up its slot; auto: while the operator that leads "
        "announces in its Lease that it wakes such jobs.",
    ),
    _option(
        "--operator-namespace",
        callback=_check_label,
        default=DEFAULTS.operator_namespace,
        show_default="the worker's own",
        help="Namespace of the operators' Lease.",
    ),
    _option(
        "--operator-lease",
        default=DEFAULTS.operator_lease,
        help="Name of the operators' Lease.",
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
        "stop_grace_seconds",
        type=SECONDS,
        default=DEFAULTS.stop_grace_seconds,
        help="Seconds that a handler gets to stop before it is abandoned, or killed if it has its "
        "own process; after a cancel it has the job's own `cancelGraceSeconds` instead.",
    ),
)

HEALTH: Final = (
    _option(
        "--health-port",
        type=PORT,
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
        help="Seconds an event loop may be blocked before /livez fails; 0: no limit.",
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
        help="For development: restart the worker whenever a Python file beside the app changes.",
    ),
    _option(
        "--handler-record",
        type=click.Path(dir_okay=False),
        default="",
        show_default="none",
        help="File to record begin, end and checkpoints of each handler in, for `asyncjob audit "
        "check`.",
    ),
    log_format_option(PREFIX),
)


all_options = with_options(SERVING, STOPPING, HEALTH, CLUSTER, RUNNING)
"""Adds all options of the worker to a command, in the order of this module."""


class _FolderUrl(click.ParamType[Address]):
    name = "url"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        try:
            folder = Address.folder(str(value))
        except AddressError as error:
            self.fail(str(error), param, ctx)
        if len(str(folder)) > _MAX_URL_LENGTH:
            self.fail(f"at most {_MAX_URL_LENGTH} characters", param, ctx)
        return folder


class _JsonOptions(click.ParamType[Mapping[str, Any]]):
    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, Any]:
        try:
            options = orjson.loads(value)
        except orjson.JSONDecodeError:
            options = None
        if not isinstance(options, dict):
            # The value is not repeated: it may hold credentials.
            self.fail('it has to be a JSON object, such as {"endpoint_url": "…"}', param, ctx)
        return options


_OFFLOAD_OPTIONS: Final = (
    _option(
        "--offload-url",
        type=_FolderUrl(),
        show_default="none",
        help="Folder in a store for larger results, such as `s3://bucket/jobs`, "
        "`file:///var/lib/asyncjob`.",
    ),
    _option(
        "--offload-options",
        type=_JsonOptions(),
        show_default="none",
        help="Options of that store's fsspec driver, as a JSON object; no credentials.",
    ),
    _option(
        "--offload-limit",
        type=COUNT,
        default=MAX_OBJECT_BYTES,
        help="Largest offloaded result, and largest payload from elsewhere, in bytes.",
    ),
    _option(
        "--offload-timeout",
        type=POSITIVE_SECONDS,
        default=REQUEST_TIMEOUT_SECONDS,
        help="Seconds until a request to the store times out and is retried.",
    ),
    _option(
        "--payload-prefix",
        type=_FolderUrl(),
        multiple=True,
        show_default="the namespace's own in `--offload-url`",
        help="Folder that payloads may be read from; repeatable, in the variable separated by "
        "spaces.",
    ),
)


def offload_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the offload options to a command, which gets them as one argument `offload`."""

    @functools.wraps(command)
    def run(
        *args: Any,
        offload_url: Address | None,
        offload_options: Mapping[str, Any] | None,
        offload_limit: int,
        offload_timeout: float,
        payload_prefix: tuple[Address, ...],
        **kwargs: Any,
    ) -> None:
        if offload_options is not None and offload_url is None:
            raise click.UsageError(
                "--offload-options needs --offload-url, whose driver they are for"
            )
        settings = OffloadSettings(
            offload_url, payload_prefix, offload_options or {}, offload_limit, offload_timeout
        )
        _check_drivers(settings)
        command(*args, offload=settings, **kwargs)

    return with_options(_OFFLOAD_OPTIONS)(run)


def _check_drivers(settings: OffloadSettings) -> None:
    try:
        for protocol in sorted(settings.protocols()):
            check_driver(protocol)
    except DriverMissingError as error:
        raise click.ClickException(message_of(error)) from error


class TerseCommand(click.Command):
    """A command that reports errors in its options in one line, without the usage."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; raises a UsageError without a context, so that no usage is shown."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            message = " ".join(error.format_message().split())
            raise click.UsageError(f"{message} See `asyncjob-worker run --help`.") from error
