"""A submission from outside, where it may be anything."""

from pydantic import ValidationError

from asyncjob.intake.errors import InvalidSubmissionError, field_problem, from_validation_error
from asyncjob.rest.exact import schema_mismatches
from asyncjob.rest.submission import Submission


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
