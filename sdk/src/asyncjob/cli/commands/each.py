"""The same for each of several jobs: one that is refused keeps none of the others from it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.failures import error_message, exit_code_for
from asyncjob.cli.naming import current_program, unique
from asyncjob.cli.screen import note
from asyncjob.errors import AsyncJobError

T = TypeVar("T")

FATAL_EXIT_CODES = frozenset({ExitCode.UNAVAILABLE, ExitCode.NOT_ALLOWED})
"""What is so for one is so for all: no need to ask on."""


def for_each(names: Sequence[str], act: Callable[[str], T]) -> tuple[list[T], ExitCode]:
    """Do it for each; return what was answered, and the exit code. Refusals go to stderr."""
    answers, codes = [], []
    for name in unique(names):
        try:
            answers.append(act(name))
        except AsyncJobError as error:
            code = exit_code_for(error)
            if code in FATAL_EXIT_CODES:
                raise
            note(f"error: {with_job_name(name, error_message(error, current_program()))}")
            codes.append(code)
    return answers, worst_exit_code(codes)


def with_job_name(name: str, text: str) -> str:
    """Return the sentence, with the job's name if it does not say it."""
    return text if name in text else f"{name}: {text}"
