"""Cursors of pages, checked where they come in.

A page begins after the place that its cursor names, whatever has come or gone meanwhile: no job
that stays as it is can be skipped or come twice. Any replica can go on.
"""

from asyncjob.rest.choosing import BadCursorError, ListPosition, decode_cursor
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError


def read_cursor(cursor: str) -> ListPosition:
    """Return the place; raises RefusedError where it is none of ours."""
    try:
        return decode_cursor(cursor)
    except BadCursorError as error:
        detail = "is no cursor; take `next` of the page before as it is"
        problem = FieldProblem(field="query.cursor", detail=detail)
        raise RefusedError(kinds.INVALID, f"query.cursor {detail}", errors=[problem]) from error
