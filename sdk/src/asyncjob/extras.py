"""Says which extra of `asyncjob-sdk` brings what the bare installation lacks.

The bare installation has the models and the REST client. What builds on a library that only an
extra brings imports it inside of `needs`: who lacks it reads what to install, not which module of
somebody else's is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from asyncjob.errors import ConfigError

Extra = Literal["cli", "handlers", "kubernetes", "metrics", "offload", "tracing"]

_OWN: Final = "asyncjob"


class MissingExtraError(ConfigError, ImportError):
    """A part of asyncjob-sdk is used whose extra is not installed."""

    code = "extra-missing"


@contextmanager
def needs(extra: Extra) -> Iterator[None]:
    """Raise MissingExtraError, which says what to install, for a library that is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing == _OWN:
            raise
        raise MissingExtraError(
            f"{missing} is not installed, which comes with the extra {extra}: "
            f"{install_command(extra)}"
        ) from error


def install_command(extra: Extra, distribution: str = "asyncjob-sdk") -> str:
    """Return the command that installs the extra."""
    return f"pip install '{distribution}[{extra}]'"
