"""What the command lines of the worker, the operator and the gateway have in common.

Each of their options can be given as a flag or by an environment variable. The name of the variable
follows from that of the flag, after the prefix of the program.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, get_args

from asyncjob.extras import needs
from asyncjob.logs import LogFormat

with needs("cli"):
    import click

F = TypeVar("F", bound=Callable[..., Any])

SECONDS: Final = click.FloatRange(min=0)
POSITIVE_SECONDS: Final = click.FloatRange(min=0, min_open=True)
PORT: Final = click.IntRange(0, 65535)
"""A port to listen on; what 0 means is up to the option."""

_LOG_FORMATS: Final = click.Choice(get_args(LogFormat))
_LOG_LEVELS: Final = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False)


def program_option(prefix: str, *flags: str, **details: Any) -> Callable[[F], F]:
    """Return an option that a variable sets as well: `--stop-wait` is `PREFIX_STOP_WAIT`.

    `details` are those of `click.option`; an `envvar` among them is a variable of another name.
    """
    name = flags[0].partition("/")[0].removeprefix("--")
    variable = f"{prefix}_{name}".replace("-", "_").upper()
    return click.option(*flags, **{"envvar": variable, "show_default": True, **details})


def log_format_option(prefix: str, **details: Any) -> Callable[[F], F]:
    """Return the option `--log-format`."""
    help_text = {"help": "`text` or `json`."}
    return program_option(
        prefix, "--log-format", type=_LOG_FORMATS, default="text", **{**help_text, **details}
    )


def log_level_option(prefix: str, **details: Any) -> Callable[[F], F]:
    """Return the option `--log-level`; its value is the name of a level, in any case of letters."""
    text = "Minimum level of log lines."
    return program_option(
        prefix, "--log-level", type=_LOG_LEVELS, default="INFO", help=text, **details
    )


def metrics_port_option(prefix: str, *, default: int, **details: Any) -> Callable[[F], F]:
    """Return the option `--metrics-port`."""
    text = "Port of /metrics; 0: none."
    return program_option(
        prefix, "--metrics-port", type=PORT, default=default, help=text, **details
    )


def with_options(*groups: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Return a decorator that adds the options to a command, in this order."""

    def add(command: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add
