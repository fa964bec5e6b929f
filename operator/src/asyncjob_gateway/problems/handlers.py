"""Has the framework answer every error with a problem."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from asyncjob.errors import AsyncJobError
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import problem_response
from asyncjob_gateway.problems.translate import (
    from_http_exception,
    from_validation_error,
    to_refused_error,
)


def install_exception_handlers(app: FastAPI) -> None:
    """Set the handlers of an app; what nobody foresaw is logged by whoever serves the app."""
    app.add_exception_handler(AsyncJobError, _on_asyncjob_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def _on_asyncjob_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AsyncJobError)
    return problem_response(to_refused_error(error), request.url.path)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(from_http_exception(error), request.url.path)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(from_validation_error(error), request.url.path)


async def _on_unexpected_error(request: Request, _error: Exception) -> Response:
    return problem_response(RefusedError(kinds.INTERNAL), request.url.path)
