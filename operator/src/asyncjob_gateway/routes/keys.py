"""An idempotency key may come in a header, for bodies that have no room for one."""

from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.submission import Submission
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError


def with_key(submission: Submission, key: str | None) -> Submission:
    """Return the submission under the key of the request's header, if there is one.

    Raises RefusedError where header and body disagree.
    """
    if key is None or submission.idempotency_key == key:
        return submission
    if submission.idempotency_key is not None:
        detail = "differs from idempotencyKey in the body"
        error = FieldProblem(field="header.Idempotency-Key", detail=detail)
        raise RefusedError(kinds.INVALID, f"Idempotency-Key {detail}", errors=[error])
    return submission.model_copy(update={"idempotency_key": key})
