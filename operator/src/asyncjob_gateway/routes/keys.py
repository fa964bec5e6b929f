"""An idempotency key may come in a header, for bodies that have no room for one."""

from typing import Annotated, Final

from fastapi import Depends, Request

from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.submission import Submission
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.routes.parameters import IdempotencyKey

_KEY_HEADER: Final = "Idempotency-Key"


async def _key_of_header(request: Request, key: IdempotencyKey = None) -> str | None:
    if len(set(request.headers.getlist(_KEY_HEADER))) > 1:
        raise _invalid_key("is given more than once, with different values")
    if key is not None and not key.isascii():
        # some clients send UTF-8 and some Latin-1: the same key would be two
        raise _invalid_key("has to be ASCII; send this key as idempotencyKey in the body")
    return key


HeaderKey = Annotated[str | None, Depends(_key_of_header)]
"""The key of the request's header; 422 where it could be read in two ways."""


def with_idempotency_key(submission: Submission, key: str | None) -> Submission:
    """Return the submission under the key of the request's header, if there is one.

    Raises RefusedError where header and body disagree.
    """
    if key is None or submission.idempotency_key == key:
        return submission
    if submission.idempotency_key is not None:
        raise _invalid_key("differs from idempotencyKey in the body")
    return submission.model_copy(update={"idempotency_key": key})


def reject_batch_key(request: Request) -> None:
    """Raise RefusedError where a batch is sent under a key: it would keep no job from being two."""
    if _KEY_HEADER in request.headers:
        raise _invalid_key("says nothing of a batch; give each of its jobs an idempotencyKey")


def _invalid_key(detail: str) -> RefusedError:
    error = FieldProblem(field=f"header.{_KEY_HEADER}", detail=detail)
    return RefusedError(kinds.INVALID, f"{_KEY_HEADER} {detail}", errors=[error])
