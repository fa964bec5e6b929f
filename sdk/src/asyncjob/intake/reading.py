"""A submission from outside, where it may be anything."""

from pydantic import ValidationError

from asyncjob.intake.errors import InvalidSubmissionError, from_validation, problem
from asyncjob.rest.exact import inexact
from asyncjob.rest.submission import Submission


def read_submission(data: object, *, prefix: str = "") -> Submission:
    """Return the submission; raises InvalidSubmissionError, each field named below `prefix`."""
    below = f"{prefix}." if prefix else ""
    wrong = [problem(f"{below}{one.field}", one.detail) for one in inexact(Submission, data)]
    try:
        found = Submission.model_validate(data)
    except ValidationError as error:
        told = from_validation(error, prefix).errors
        known = {one.field for one in told}
        more = [one for one in wrong if one.field not in known]
        raise InvalidSubmissionError([*told, *more]) from error
    if wrong:
        raise InvalidSubmissionError(wrong)
    return found
