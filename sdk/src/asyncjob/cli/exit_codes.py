"""The exit codes, for scripts: a closed list whose meanings never change."""

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


EXIT_CODE_DOCS: Final[dict[ExitCode, str]] = {
    ExitCode.OK: "done; `wait`: all jobs succeeded, or came to what `--for` names; `doctor`: no "
    "problem",
    ExitCode.FAILED: "not done, or not all of it; `doctor`: a problem",
    ExitCode.USAGE: "an argument or option is wrong, or a file that is to be submitted or "
    "restored; nothing was done",
    ExitCode.NOT_FOUND: "no such job, queue or schedule, or no result yet",
    ExitCode.DEAD_LETTER: "waited for a job that became a dead letter",
    ExitCode.CANCELLED: "waited for a job that was cancelled",
    ExitCode.TIMEOUT: "waited for longer than `--timeout`",
    ExitCode.UNAVAILABLE: "no cluster is configured, or API server or gateway do not answer; the "
    "same command may work later",
    ExitCode.NOT_ALLOWED: "not signed in, or not allowed to",
    ExitCode.CONFLICT: "another job, or the state of this one, stands in the way",
    ExitCode.OTHER_END: "waited with `--for` for a phase that the job can no longer come to",
    ExitCode.LEFT_OUT: "`export`: the file holds all but the objects that stderr names, which "
    "cannot be written",
    ExitCode.INTERRUPTED: "Ctrl-C",
}

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
