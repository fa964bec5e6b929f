"""A submission from outside, where it may be anything."""

from pydantic import ValidationError

from asyncjob.intake.errors import from_validation
from asyncjob.rest.submission import Submission


def read_submission(data: object, *, prefix: str = "") -> Submission:
    """Return the submission; raises InvalidSubmissionError, each field named below `prefix`."""
    try:
        return Submission.model_validate(data)
    except ValidationError as error:
        raise from_validation(error, prefix) from error
