"""The submissions that a command line means, all of them checked before the first is sent. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from asyncjob.cli.documents import Document
from asyncjob.intake.errors import InvalidSubmissionError, from_validation_error
from asyncjob.intake.order import build_manifest
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.rest.submission import Submission

MERGED_FIELDS: Final = ("labels", "retryPolicy")
"""Of these an option sets one part, and leaves the others as the file has them."""

SINGLE_JOB_OPTIONS: Final = {"name": "--name", "idempotencyKey": "--idempotency-key"}
"""Options that would make several jobs one."""

MAX_REPORTED_MISTAKES: Final = 10
"""So many mistakes are told at once."""


@dataclass(frozen=True, slots=True)
class PreparedSubmission:
    """A submission, and where it comes from."""

    location: str
    submission: Submission


class InvalidInputError(ValueError):
    """What is to be submitted cannot be; a line for each mistake."""


def payload_documents(kind: str, payloads: Iterable[Document]) -> list[Document]:
    """Return the jobs of a type, one for each payload."""
    return [Document(one.location, {"type": kind, "payload": one.value}) for one in payloads]


def prepare_submissions(jobs: Iterable[Document], options: JsonObject) -> list[PreparedSubmission]:
    """Return the submissions; options win over what files say. Raises MistakesError."""
    documents = list(jobs)
    _check_single_job_options(documents, options)
    made, mistakes = [], []
    for document in documents:
        try:
            made.append(PreparedSubmission(document.location, _build_submission(document, options)))
        except InvalidSubmissionError as error:
            mistakes.append(f"{document.location}: {error}" if document.location else str(error))
    if mistakes:
        more = len(mistakes) - MAX_REPORTED_MISTAKES
        rest = [f"… and {more} more"] if more > 0 else []
        raise InvalidInputError("\n".join([*mistakes[:MAX_REPORTED_MISTAKES], *rest]))
    return made


def _check_single_job_options(documents: list[Document], options: JsonObject) -> None:
    for field, flag in SINGLE_JOB_OPTIONS.items():
        if field in options and len(documents) > 1:
            raise InvalidInputError(f"{flag} is for one job, and these are {len(documents)}")


def _build_submission(document: Document, options: JsonObject) -> Submission:
    value = document.value if isinstance(document.value, Mapping) else {}
    try:
        made = Submission.model_validate(merge_options(value, options))
    except ValidationError as error:
        raise from_validation_error(error) from error
    build_manifest(made, "default", new_id="checked")  # checks what the schema does not
    return made


def merge_options(fields: JsonObject, options: JsonObject) -> dict[str, Json]:
    """Return the fields with the options over them."""
    merged = {
        name: {**child(fields, name), **child(options, name)}
        for name in MERGED_FIELDS
        if name in options
    }
    return {**fields, **options, **merged}
