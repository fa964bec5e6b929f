"""The form that submits a job: from its fields to a submission. What was typed is never lost."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob.client.errors import InvalidSubmissionError
from asyncjob.free_json import FreeJsonError, parse
from asyncjob.intake.reading import read_submission
from asyncjob.rest.submission import Submission
from asyncjob_gateway.limits.strict_json import MAX_VALUES

TEXT_FIELDS: Final = {
    "type": "type",
    "queue": "queue",
    "name": "name",
    "notBefore": "notBefore",
    "idempotencyKey": "idempotencyKey",
    "deduplicationId": "deduplicationId",
    "concurrencyKey": "concurrencyKey",
}
NUMBER_FIELDS: Final = ("priority", "executionTimeoutSeconds", "ttlSecondsAfterFinished")
FIELDS: Final = (*TEXT_FIELDS, *NUMBER_FIELDS, "maxRetries", "labels", "payload")

_NUMBER_PATTERN: Final = re.compile(r"-?[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class SubmitForm:
    """What was typed, and what is wrong with it, field by field; `problem` is about the whole."""

    given: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def more(self) -> bool:
        """Whether one of the rarer fields is filled in, or wrong."""
        first = {"type", "queue", "payload"}
        return bool((set(self.given) | set(self.errors)) - first)


def read_submit_form(given: Mapping[str, str]) -> Submission | SubmitForm:
    """Return the submission, or the form again with what is wrong."""
    asked: dict[str, object] = {name: given[name] for name in TEXT_FIELDS if name in given}
    errors: dict[str, str] = {}
    for name in (*NUMBER_FIELDS, "maxRetries"):
        if name in given and not _NUMBER_PATTERN.fullmatch(given[name]):
            errors[name] = "a whole number"
        elif name in given and name != "maxRetries":
            asked[name] = int(given[name])
    if "maxRetries" in given and "maxRetries" not in errors:
        asked["retryPolicy"] = {"maxRetries": int(given["maxRetries"])}
    _read_labels(given, asked, errors)
    _read_payload(given, asked, errors)
    return SubmitForm(given, errors) if errors else _validated(given, asked)


def _validated(given: Mapping[str, str], asked: Mapping[str, object]) -> Submission | SubmitForm:
    try:
        return read_submission(asked)
    except InvalidSubmissionError as error:
        return with_errors(given, error)


def with_errors(given: Mapping[str, str], error: InvalidSubmissionError) -> SubmitForm:
    """Return the form with what the submission was refused for."""
    errors = {_input_name(one.field): one.detail for one in error.errors}
    known = {name: text for name, text in errors.items() if name in FIELDS}
    return SubmitForm(given, known, "" if known and len(known) == len(errors) else str(error))


def _input_name(field: str) -> str:
    """Return the name of the input that a field comes from."""
    return field.removeprefix("retryPolicy.").split(".", maxsplit=1)[0]


def _read_labels(
    given: Mapping[str, str], asked: dict[str, object], errors: dict[str, str]
) -> None:
    if "labels" not in given:
        return
    pairs = [part.strip().partition("=") for part in given["labels"].split(",") if part.strip()]
    if all(name.strip() and equals for name, equals, _ in pairs):
        asked["labels"] = {name.strip(): value.strip() for name, _, value in pairs}
    else:
        errors["labels"] = "name=value, several with commas between them"


def _read_payload(
    given: Mapping[str, str], asked: dict[str, object], errors: dict[str, str]
) -> None:
    if "payload" not in given:
        return
    try:
        asked["payload"] = parse(given["payload"].encode(), what="payload", max_values=MAX_VALUES)
    except (FreeJsonError, UnicodeEncodeError) as error:
        errors["payload"] = str(error)
