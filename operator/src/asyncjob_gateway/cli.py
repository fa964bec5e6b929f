"""`asyncjob-gateway`: the command line.

Each option of `run` has an environment variable of its own and fills one setting; the reference
page lists the options from the tables here.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import click
import uvloop

from asyncjob.errors import AsyncJobError, message_of
from asyncjob.logs import configure_logging
from asyncjob.programs.options import (
    PORT,
    POSITIVE_SECONDS,
    SECONDS,
    log_format_option,
    log_level_option,
    metrics_port_option,
    program_option,
    with_options,
)
from asyncjob.tracing.provider import set_up_tracing
from asyncjob_gateway.server import run_gateway
from asyncjob_gateway.settings import GatewaySettings

ENV_PREFIX: Final = "ASYNCJOB_GATEWAY"
DEFAULTS: Final = GatewaySettings()
COUNT: Final = click.IntRange(min=1)

CREDENTIAL_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie"}
)
"""Headers that are never handed to handlers: they are credentials."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


def _check_header_names(
    _: click.Context, __: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        if not _HEADER_NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r} is not a valid header name.")
        if name.lower() in CREDENTIAL_HEADERS:
            raise click.BadParameter(f"{name} carries credentials; it is never handed on.")
    return tuple(name.lower() for name in names)


_option = partial(program_option, ENV_PREFIX)

CLUSTER_OPTIONS: Final = (
    _option(
        "--namespace",
        multiple=True,
        show_default="its own",
        help="Namespace to serve; repeatable. The first is used by requests that name none.",
    ),
    _option(
        "--kubeconfig",
        type=click.Path(),
        show_default="as kubectl",
        help="Kubeconfig. Default: `KUBECONFIG`, the pod's service account, `~/.kube/config`.",
    ),
)

LISTEN_OPTIONS: Final = (
    _option("--host", default=DEFAULTS.host, help="Address to listen on."),
    _option("--port", type=PORT, default=DEFAULTS.port, help="Port to listen on."),
    _option(
        "--tls-cert",
        type=click.Path(exists=True, dir_okay=False),
        show_default="none",
        help="Certificate (PEM), with --tls-key; without it, end TLS in front of the gateway.",
    ),
    _option(
        "--tls-key",
        type=click.Path(exists=True, dir_okay=False),
        show_default="none",
        help="Private key (PEM) of the certificate.",
    ),
    _option(
        "--cors-origin",
        multiple=True,
        show_default="none",
        help="Origin whose pages may call the API, such as https://app.example; repeatable.",
    ),
    metrics_port_option(ENV_PREFIX, default=DEFAULTS.metrics_port),
    _option("--metrics-host", default=DEFAULTS.metrics_host, help="Address of /metrics."),
)

AUTH_OPTIONS: Final = (
    _option(
        "--open",
        is_flag=True,
        show_default="off",
        help="For development: no authentication. Only with --host on loopback.",
    ),
    _option(
        "--audience",
        multiple=True,
        show_default="the API server's",
        help="Accepted audience of tokens; repeatable.",
    ),
    _option(
        "--auth-cache",
        type=SECONDS,
        default=DEFAULTS.auth_cache,
        help="Seconds for which checked tokens and permissions are cached. A revoked one stays "
        "valid until then.",
    ),
    _option(
        "--auth-rate",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.auth_rate,
        help="Maximum number of token checks, and of permission checks, per second. At most half "
        "of the token checks are for unknown tokens and a quarter for one address; at most a "
        "quarter of the permission checks are for one caller.",
    ),
    _option(
        "--forward-header",
        multiple=True,
        callback=_check_header_names,
        show_default="none",
        help="Header of a submission that is passed to the job's handler in `request.headers`; "
        "repeatable. Never Authorization or Cookie.",
    ),
)

LIMIT_OPTIONS: Final = (
    _option(
        "--max-body",
        type=COUNT,
        default=DEFAULTS.max_body,
        help="Maximum size of a body in bytes; of a body with a single job 2 MiB.",
    ),
    _option(
        "--max-requests",
        type=COUNT,
        default=DEFAULTS.max_requests,
        help="Maximum number of concurrent requests, counted from when the body is received.",
    ),
    _option(
        "--max-connections",
        type=COUNT,
        default=DEFAULTS.max_connections,
        help="Maximum number of connections. Beyond it, idle new connections are closed first.",
    ),
    _option(
        "--max-streams",
        type=COUNT,
        default=DEFAULTS.max_streams,
        help="Maximum number of concurrent event streams.",
    ),
    _option(
        "--max-streams-per-caller",
        type=COUNT,
        default=DEFAULTS.max_streams_per_caller,
        help="Maximum number of concurrent event streams of one caller.",
    ),
    _option(
        "--request-timeout",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.request_timeout,
        help="Seconds after which a request times out.",
    ),
    _option(
        "--header-timeout",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.header_timeout,
        help="Seconds within which the headers of a request must be received.",
    ),
    _option(
        "--body-timeout",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.body_timeout,
        help="Seconds within which the body of a request must be received.",
    ),
    _option(
        "--heartbeat",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.heartbeat,
        help="Seconds between keep-alive comments in an event stream.",
    ),
)

SHUTDOWN_OPTIONS: Final = (
    _option(
        "--drain",
        type=SECONDS,
        default=DEFAULTS.drain,
        help="Seconds for which it keeps serving after SIGTERM while not ready.",
    ),
    _option(
        "--grace",
        type=SECONDS,
        default=DEFAULTS.grace,
        help="Seconds that running requests then have to finish.",
    ),
)

LOG_OPTIONS: Final = (log_format_option(ENV_PREFIX), log_level_option(ENV_PREFIX))

OPTION_GROUPS: Final = (
    CLUSTER_OPTIONS,
    LISTEN_OPTIONS,
    AUTH_OPTIONS,
    LIMIT_OPTIONS,
    SHUTDOWN_OPTIONS,
    LOG_OPTIONS,
)


_REPEATABLE_OPTIONS: Final = {
    "namespace": "namespaces",
    "audience": "audiences",
    "forward_header": "forward_headers",
    "cors_origin": "cors_origins",
}
"""Options that may be given several times, and the settings that they fill."""

_TRACE_SERVICE: Final = "asyncjob-gateway"
_DISTRIBUTION: Final = "asyncjob-operator"


@click.group()
@click.version_option(package_name="asyncjob-operator")
def main() -> None:
    """Serve AsyncJobs over HTTP."""


@main.command()
@with_options(*OPTION_GROUPS)
def run(*, log_format: Any, log_level: str, **given: Any) -> None:
    """Run until SIGTERM.

    Each option can also be set by ASYNCJOB_GATEWAY_<OPTION>; several values of one are separated by
    spaces there.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    # Below INFO it logs each event, in full.
    configure_logging(log_format, level, library_levels={"sse_starlette": logging.INFO})
    settings = GatewaySettings(
        **{_REPEATABLE_OPTIONS.get(name, name): value for name, value in given.items()}
    )
    try:
        with _tracing():
            uvloop.run(run_gateway(settings))
    except AsyncJobError as error:
        raise click.ClickException(message_of(error)) from error


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace submissions as the environment asks, and hand on the last spans in the end."""
    close = set_up_tracing(os.environ, _TRACE_SERVICE, _DISTRIBUTION)
    try:
        yield
    finally:
        if close:
            close()
