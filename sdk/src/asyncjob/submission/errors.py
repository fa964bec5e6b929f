"""The error of a submission that cannot become a job, field by field."""

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from asyncjob.errors import AsyncJobError
from asyncjob.free_json import MAX_DEPTH, replace_unencodable
from asyncjob.models.field_errors import field_detail
from asyncjob.rest.problem import FieldProblem


class InvalidSubmissionError(AsyncJobError):
    """The job is not what a job has to be; `errors` says so field by field."""

    code = "invalid"

    def __init__(self, errors: Sequence[FieldProblem] = (), message: str | None = None) -> None:
        summary = "; ".join(f"{one.field}: {one.detail}" for one in errors)
        super().__init__(message or summary or None)
        self.errors = tuple(errors)


def invalid_field(field: str, detail: str) -> InvalidSubmissionError:
    """Return the error about one field."""
    return InvalidSubmissionError([field_problem(field, detail)])


def field_problem(field: str, detail: str) -> FieldProblem:
    """Return what is wrong with one field, as text that can always be sent."""
    return FieldProblem(field=replace_unencodable(field), detail=replace_unencodable(detail))


def from_validation_error(error: ValidationError, prefix: str = "") -> InvalidSubmissionError:
    """Return the error that a model's refusal stands for."""
    found = error.errors(include_url=False, include_input=False)
    return InvalidSubmissionError([_to_field_problem(one, prefix) for one in found])


def _to_field_problem(one: ErrorDetails, prefix: str) -> FieldProblem:
    steps = one["loc"]
    if len(steps) > 1 + 2 * MAX_DEPTH:  # two a level: pydantic gives up at some 255
        detail = f"nested deeper than {MAX_DEPTH} levels"
        return field_problem(_field_path(prefix, steps[:1]), detail)
    return field_problem(_field_path(prefix, steps), field_detail(one))


def _field_path(prefix: str, steps: tuple[int | str, ...]) -> str:
    if steps[:1] == ("payload",):  # free JSON is told with the type of each level
        steps = ("payload", *steps[2::2])
    return ".".join(filter(None, [prefix, *map(str, steps)])) or "job"
