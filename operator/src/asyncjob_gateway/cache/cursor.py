"""Where a page ended: creation time and UID of its last job, so that any replica can go on.

A page begins after that place, whatever has come or gone meanwhile: no job that stays as it is can
be skipped or come twice.
"""

import base64
import binascii
from typing import Final

import orjson

from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway.cache.entry import Place
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems import kinds

_LONGEST: Final = 256


def encode(place: Place) -> str:
    """Return the cursor of a place."""
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def decode(cursor: str) -> Place:
    """Return the place of a cursor; raises RefusedError where it is none of ours."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        read = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        read = None
    match read:
        case [str(created), str(uid)] if len(cursor) <= _LONGEST:
            return created, uid
    detail = "is no cursor; take `next` of the page before as it is"
    raise RefusedError(
        kinds.INVALID,
        f"query.cursor: {detail}",
        errors=[FieldProblem(field="query.cursor", detail=detail)],
    )
