"""The same for each of several jobs: one that is refused keeps none of the others from it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from asyncjob.cli.exit_codes import ExitCode, worst
from asyncjob.cli.failures import exit_code, sentence
from asyncjob.cli.naming import distinct, program
from asyncjob.cli.screen import note
from asyncjob.errors import AsyncJobError

T = TypeVar("T")

ALL_ALIKE = frozenset({ExitCode.UNAVAILABLE, ExitCode.NOT_ALLOWED})
"""What is so for one is so for all: no need to ask on."""


def each(names: Sequence[str], act: Callable[[str], T]) -> tuple[list[T], ExitCode]:
    """Do it for each; return what was answered, and the exit code. Refusals go to stderr."""
    answers, codes = [], []
    for name in distinct(names):
        try:
            answers.append(act(name))
        except AsyncJobError as error:
            code = exit_code(error)
            if code in ALL_ALIKE:
                raise
            note(f"error: {about(name, sentence(error, program()))}")
            codes.append(code)
    return answers, worst(codes)


def about(name: str, text: str) -> str:
    """Return the sentence, with the job's name if it does not say it."""
    return text if name in text else f"{name}: {text}"
