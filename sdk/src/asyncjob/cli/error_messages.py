"""What an error means to the caller: one line with a way out, and an exit code.

Also for a command that acts on several jobs, where one failure does not stop the others.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from asyncjob.audit.history_file import NotAHistoryError
from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.input.resource_names import current_program, unique
from asyncjob.cli.output.printer import note
from asyncjob.cli.output.tables import one_line
from asyncjob.client import errors
from asyncjob.errors import (
    AsyncJobError,
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    UnauthorizedError,
    UnknownOutcomeError,
    hint,
)

_EXIT_CODES: Final[tuple[tuple[type[AsyncJobError], ExitCode], ...]] = (
    (errors.NotFoundError, ExitCode.NOT_FOUND),
    (errors.NoResultError, ExitCode.NOT_FOUND),
    (errors.InTheWayError, ExitCode.CONFLICT),
    (errors.JobStateError, ExitCode.CONFLICT),
    (errors.QueueFullError, ExitCode.CONFLICT),
    (errors.InvalidSubmissionError, ExitCode.USAGE),
    (errors.InvalidRequestError, ExitCode.USAGE),
    (errors.UnauthenticatedError, ExitCode.NOT_ALLOWED),
    (errors.NotAllowedError, ExitCode.NOT_ALLOWED),
    (errors.WaitTimeoutError, ExitCode.TIMEOUT),
    (errors.UnavailableError, ExitCode.UNAVAILABLE),
    (errors.ClientConfigError, ExitCode.UNAVAILABLE),
    (ConfigError, ExitCode.UNAVAILABLE),
    (ObjectNotFoundError, ExitCode.NOT_FOUND),
    (ForbiddenError, ExitCode.NOT_ALLOWED),
    (UnauthorizedError, ExitCode.NOT_ALLOWED),
    (ThrottledError, ExitCode.UNAVAILABLE),
    (UnknownOutcomeError, ExitCode.UNAVAILABLE),
    (ConflictError, ExitCode.CONFLICT),
    (InvalidError, ExitCode.USAGE),
    (NotAHistoryError, ExitCode.USAGE),
)

_WAYS_OUT: Final[tuple[tuple[type[AsyncJobError], str], ...]] = (
    (errors.JobNotFoundError, "{program} list shows the jobs of this namespace"),
    (errors.CronJobNotFoundError, "{program} cron list shows the cron jobs"),
    (errors.ArrayNotFoundError, "{program} array list shows the arrays"),
    (errors.QueueNotFoundError, "{program} queue list shows the queues"),
    (errors.NotFoundError, "{program} doctor checks the installation"),
    (errors.NotADeadLetterError, "{program} get {job} shows its state"),
    (errors.JobExistsError, "{program} get {job} shows it; choose another --name"),
    (errors.DuplicateJobError, "{program} wait {job} waits for it"),
    (errors.KeyReusedError, "{program} get {job} shows it; use another key, or the same request"),
    (errors.UnauthenticatedError, "sign in again, or pass --token"),
    (UnauthorizedError, "sign in again, or pass another --kubeconfig or --context"),
    (errors.UnavailableError, "try again; {program} doctor shows the cause"),
    (UnknownOutcomeError, "try again; {program} doctor shows the cause"),
    (ObjectNotFoundError, "{program} doctor checks the installation"),
)


def exit_code_for(error: AsyncJobError) -> ExitCode:
    """Return the exit code that an error stands for."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), ExitCode.FAILED)


def error_message(error: AsyncJobError, program: str) -> str:
    """Return the error in one line, with the way out, and the command that explains it."""
    text, job = one_line(str(error)), getattr(error, "job_id", "")
    out = next((out for kind, out in _WAYS_OUT if isinstance(error, kind)), "")
    if not out or ("{job}" in out and not job):
        return f"{text} ({hint(error, program)})"
    return f"{text} ({out.format(program=program, job=job)}; {hint(error, program)})"


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
