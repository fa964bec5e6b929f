"""The submissions that a command line means, all of them checked before the first is sent. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from asyncjob.cli.documents import Document
from asyncjob.intake.errors import InvalidSubmissionError, from_validation
from asyncjob.intake.order import order
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.rest.submission import Submission

MERGED: Final = ("labels", "retryPolicy")
"""Of these an option sets one part, and leaves the others as the file has them."""

ONE_ONLY: Final = {"name": "--name", "idempotencyKey": "--idempotency-key"}
"""Options that would make several jobs one."""

TOLD: Final = 10
"""So many mistakes are told at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A submission, and where it comes from."""

    where: str
    submission: Submission


class MistakesError(ValueError):
    """What is to be submitted cannot be; a line for each mistake."""


def with_type(kind: str, payloads: Iterable[Document]) -> list[Document]:
    """Return the jobs of a type, one for each payload."""
    return [Document(one.where, {"type": kind, "payload": one.value}) for one in payloads]


def wanted(jobs: Iterable[Document], options: JsonObject) -> list[Wanted]:
    """Return the submissions; options win over what files say. Raises MistakesError."""
    documents = list(jobs)
    _check_single(documents, options)
    made, mistakes = [], []
    for document in documents:
        try:
            made.append(Wanted(document.where, _submission(document, options)))
        except InvalidSubmissionError as error:
            mistakes.append(f"{document.where}: {error}" if document.where else str(error))
    if mistakes:
        more = len(mistakes) - TOLD
        rest = [f"… and {more} more"] if more > 0 else []
        raise MistakesError("\n".join([*mistakes[:TOLD], *rest]))
    return made


def _check_single(documents: list[Document], options: JsonObject) -> None:
    for field, flag in ONE_ONLY.items():
        if field in options and len(documents) > 1:
            raise MistakesError(f"{flag} is for one job, and these are {len(documents)}")


def _submission(document: Document, options: JsonObject) -> Submission:
    value = document.value if isinstance(document.value, Mapping) else {}
    try:
        made = Submission.model_validate(combined(value, options))
    except ValidationError as error:
        raise from_validation(error) from error
    order(made, "default", new_id="checked")  # checks what the schema does not
    return made


def combined(fields: JsonObject, options: JsonObject) -> dict[str, Json]:
    """Return the fields with the options over them."""
    merged = {
        name: {**child(fields, name), **child(options, name)} for name in MERGED if name in options
    }
    return {**fields, **options, **merged}
