"""The exit codes, for scripts: a closed list whose meanings never change.

`asyncjob.explanations` says what each means.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DEAD_LETTER = 4
    CANCELLED = 5
    TIMEOUT = 6
    UNAVAILABLE = 7
    NOT_ALLOWED = 8
    CONFLICT = 9
    OTHER_END = 10
    LEFT_OUT = 11
    INTERRUPTED = 130


_WORST_FIRST: Final = (
    ExitCode.NOT_FOUND,
    ExitCode.DEAD_LETTER,
    ExitCode.CANCELLED,
    ExitCode.OTHER_END,
    ExitCode.TIMEOUT,
)


def worst_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code of a command on several jobs: the worst of theirs."""
    there = sorted(set(codes) - {ExitCode.OK})
    ranked: list[ExitCode] = [code for code in _WORST_FIRST if code in there]
    return next(iter([*ranked, *there]), ExitCode.OK)
