"""Has the framework answer every error with a problem."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from asyncjob.errors import AsyncJobError
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import answer
from asyncjob_gateway.problems.translate import from_framework, from_validation, refusal_of


def install(app: FastAPI) -> None:
    """Set the handlers of an app; what nobody foresaw is logged by whoever serves the app."""
    app.add_exception_handler(AsyncJobError, _ours)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(Exception, _unforeseen)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, AsyncJobError)
    return answer(refusal_of(error), request.url.path)


async def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return answer(from_framework(error), request.url.path)


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(from_validation(error), request.url.path)


async def _unforeseen(request: Request, _error: Exception) -> Response:
    return answer(RefusedError(kinds.INTERNAL), request.url.path)
