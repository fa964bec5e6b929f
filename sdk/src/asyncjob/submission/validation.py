"""Validates submissions before they are sent: what the API server would refuse, or accept and lose.

A submission from outside may be anything; it is read strictly, and all fields at fault are named in
one error.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from asyncjob import names
from asyncjob.free_json import FreeJsonError, TooManyBytesError, encode, replace_unencodable
from asyncjob.json_types import Json
from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp
from asyncjob.models.job import Dependency, RequestData
from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.strict import schema_mismatches
from asyncjob.rest.submission import Submission
from asyncjob.submission.errors import InvalidSubmissionError, field_problem, from_validation_error

MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""Largest payload: the store takes about half as much again for the whole job."""

MAX_OTHER_BYTES: Final = 256 * 1024
"""Largest of any other field."""

_LABEL_KEY: Final = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def check_submission(submission: Submission, fields: Mapping[str, Json]) -> None:
    """Raise InvalidSubmissionError with all that is wrong; `fields` are what is set, as JSON."""
    wrong = [
        *_json_problems(fields),
        *_name_problems(submission),
        *_source_problems(submission),
        *_parameter_problems(submission),
        *label_problems(submission.labels or {}),
        *dependency_problems(submission.depends_on or (), submission.name, names.JOB_KIND),
        *_time_problems(submission),
    ]
    if wrong:
        raise InvalidSubmissionError(wrong)


def _json_problems(fields: Mapping[str, Json]) -> Iterator[FieldProblem]:
    for name, value in fields.items():
        limit = MAX_PAYLOAD_BYTES if name == "payload" else MAX_OTHER_BYTES
        try:
            encode(value, what=name, max_bytes=limit)
        except TooManyBytesError as error:
            yield field_problem(name, f"{error}; hand large data over by a reference to it")
        except FreeJsonError as error:
            yield field_problem(name, str(error))


def _name_problems(submission: Submission) -> Iterator[FieldProblem]:
    for field, key in (
        ("idempotencyKey", submission.idempotency_key),
        ("deduplicationId", submission.deduplication_id),
    ):
        if submission.name is not None and key is not None:
            detail = f"a job with {field} has a name that follows from it; leave the name out"
            yield field_problem("name", detail)


def _source_problems(submission: Submission) -> Iterator[FieldProblem]:
    source = submission.payload_from
    if source is None:
        return
    if submission.payload is not None:
        yield field_problem("payloadFrom", "give payload or payloadFrom, not both")
    if len(source.model_dump(exclude_none=True)) != 1:
        detail = "give exactly one of secretKeyRef, configMapKeyRef and uri"
        yield field_problem("payloadFrom", detail)


def _parameter_problems(submission: Submission) -> Iterator[FieldProblem]:
    for field, maps in (submission.request or RequestData()).model_dump(by_alias=True).items():
        for name in maps or ():
            if replace_unencodable(name) != name:
                yield field_problem(f"request.{field}.{name}", "its name is not Unicode text")


def label_problems(labels: Mapping[str, str]) -> Iterator[FieldProblem]:
    """Yield what of the labels Kubernetes does not take, or is asyncjob's own."""
    for key, value in labels.items():
        where = f"labels.{key}"
        if key.startswith(f"{names.GROUP}/"):
            yield field_problem(where, f"labels below {names.GROUP}/ are asyncjob's")
        elif not _LABEL_KEY.fullmatch(key):
            yield field_problem(where, "no label of Kubernetes can be called so")
        if not _LABEL_VALUE.fullmatch(value):
            yield field_problem(where, f"{value!r} cannot be a label's value")


def dependency_problems(
    depends_on: Sequence[Dependency], own_name: str | None, own_kind: str
) -> Iterator[FieldProblem]:
    """Yield what of the dependencies of a job or an array cannot be right."""
    seen = set()
    for number, one in enumerate(depends_on):
        where, kind = f"dependsOn.{number}", names.ARRAY_KIND if one.array else names.JOB_KIND
        if (one.name is None) == (one.array is None):
            yield field_problem(where, "give either name, of a job, or array")
        elif one.array and one.children:
            yield field_problem(f"{where}.children", "children are those of a job: leave it out")
        elif one.called in seen:
            yield field_problem(where, f"{one.called} is named twice")
        elif (kind, one.array or one.name) == (own_kind, own_name):
            yield field_problem(where, f"{one.called} cannot depend on itself; leave it out")
        seen.add(one.called)


def time_problems(field: str, value: str | None) -> Iterator[FieldProblem]:
    """Yield that a time is none, if it is given."""
    try:
        if value is not None:
            format_timestamp(parse_timestamp(value))
    except ValueError:
        yield field_problem(field, f"not a valid time: {value}")


def _time_problems(submission: Submission) -> Iterator[FieldProblem]:
    not_before, not_after = submission.not_before, submission.not_after
    wrong = [*time_problems("notBefore", not_before), *time_problems("notAfter", not_after)]
    yield from wrong
    if wrong or not_before is None or not_after is None:
        return
    if parse_timestamp(not_after) <= parse_timestamp(not_before):
        yield field_problem("notAfter", "it has to be later than notBefore")


def read_submission(data: object, *, prefix: str = "") -> Submission:
    """Return the submission; raises InvalidSubmissionError, each field named below `prefix`."""
    below = f"{prefix}." if prefix else ""
    wrong = [
        field_problem(f"{below}{one.field}", one.detail)
        for one in schema_mismatches(Submission, data)
    ]
    try:
        found = Submission.model_validate(data)
    except ValidationError as error:
        told = from_validation_error(error, prefix).errors
        known = {one.field for one in told}
        more = [one for one in wrong if one.field not in known]
        raise InvalidSubmissionError([*told, *more]) from error
    if wrong:
        raise InvalidSubmissionError(wrong)
    return found
