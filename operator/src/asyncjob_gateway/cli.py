"""`asyncjob-gateway`: the command line. Each option has an environment variable of its own."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
import uvloop

from asyncjob.errors import AsyncJobError
from asyncjob.logs import configure
from asyncjob.tracing.provider import set_up
from asyncjob_gateway.options import PREFIX, all_options
from asyncjob_gateway.process import serve
from asyncjob_gateway.settings import Settings

_MANY: Final = {
    "namespace": "namespaces",
    "audience": "audiences",
    "forward_header": "forward_headers",
    "cors_origin": "cors_origins",
}
"""Options that may be given several times, and the settings that they fill."""

_SERVICE: Final = "asyncjob-gateway"
_DISTRIBUTION: Final = "asyncjob-operator"


@click.group()
@click.version_option(package_name="asyncjob-operator")
def main() -> None:
    """Serve AsyncJobs over HTTP."""


@main.command(context_settings={"auto_envvar_prefix": PREFIX})
@all_options
def run(*, log_format: Any, log_level: str, **given: Any) -> None:
    """Run until SIGTERM.

    Each option can also be set by ASYNCJOB_GATEWAY_<OPTION>; several values of one are separated by
    spaces there.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    configure(log_format, level, discreet=["sse_starlette"])  # it logs each event, in full
    settings = Settings(**{_MANY.get(name, name): value for name, value in given.items()})
    try:
        with _traced():
            uvloop.run(serve(settings))
    except AsyncJobError as error:
        raise click.ClickException(" ".join(str(error).split())) from error


@contextmanager
def _traced() -> Iterator[None]:
    """Trace submissions as the environment asks, and hand on the last spans in the end."""
    close = set_up(os.environ, _SERVICE, _DISTRIBUTION)
    try:
        yield
    finally:
        if close:
            close()
