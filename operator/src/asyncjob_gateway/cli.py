"""`asyncjob-gateway`: the command line. Each option has an environment variable of its own."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
import uvloop

from asyncjob.errors import AsyncJobError
from asyncjob.logs import configure_logging
from asyncjob.tracing.provider import set_up_tracing
from asyncjob_gateway.options import ENV_PREFIX, all_options
from asyncjob_gateway.process import run_gateway
from asyncjob_gateway.settings import GatewaySettings

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


@main.command(context_settings={"auto_envvar_prefix": ENV_PREFIX})
@all_options
def run(*, log_format: Any, log_level: str, **given: Any) -> None:
    """Run until SIGTERM.

    Each option can also be set by ASYNCJOB_GATEWAY_<OPTION>; several values of one are separated by
    spaces there.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    configure_logging(log_format, level, info_only=["sse_starlette"])  # it logs each event, in full
    settings = GatewaySettings(
        **{_REPEATABLE_OPTIONS.get(name, name): value for name, value in given.items()}
    )
    try:
        with _tracing():
            uvloop.run(run_gateway(settings))
    except AsyncJobError as error:
        raise click.ClickException(" ".join(str(error).split())) from error


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace submissions as the environment asks, and hand on the last spans in the end."""
    close = set_up_tracing(os.environ, _TRACE_SERVICE, _DISTRIBUTION)
    try:
        yield
    finally:
        if close:
            close()
