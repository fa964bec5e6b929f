"""The FastAPI route class of the pages.

The reader is authenticated first, and errors become pages, too. Programs that do not ask for HTML
get the same problems as from REST.
"""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar
from urllib.parse import quote

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from asyncjob.errors import AsyncJobError
from asyncjob_gateway import problem_types
from asyncjob_gateway.context import authenticate
from asyncjob_gateway.dashboard.layout import add_security_headers, render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import anonymous_frame
from asyncjob_gateway.dashboard.security import auth_headers, set_form_token_cookie
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems import from_validation_error, problem_response, to_refused_error

log = structlog.get_logger()

PageHandler = Callable[[Request], Coroutine[Any, Any, Response]]

SIGN_IN_URL = f"{PREFIX}/sign-in"


class PublicPageRoute(APIRoute):
    """A page for everyone."""

    requires_sign_in: ClassVar[bool] = False

    def get_route_handler(self) -> PageHandler:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def serve(request: Request) -> Response:
            try:
                await self._authenticate(request)
                response = await handle(request)
            except Exception as error:  # noqa: BLE001  # a person is told of it by a page
                response = _error_page(request, error)
            set_form_token_cookie(request, response)
            return add_security_headers(response)

        return serve

    async def _authenticate(self, request: Request) -> None:
        if self.requires_sign_in:
            await authenticate(request, auth_headers(request))


class PageRoute(PublicPageRoute):
    """A page for those who have signed in, or whom a proxy vouches for by their token."""

    requires_sign_in: ClassVar[bool] = True


def wants_page(request: Request) -> bool:
    """Return whether a person asks, by a browser; else it is a program."""
    return "text/html" in request.headers.get("accept", "")


def _error_page(request: Request, error: Exception) -> Response:
    refusal = _to_refused_error(error)
    if not wants_page(request):
        return problem_response(refusal, request.url.path)
    if refusal.kind is problem_types.UNAUTHENTICATED:
        return _redirect_to_sign_in(request)
    frame, status = anonymous_frame(request), refusal.kind.status
    response = render_page("problem.html", frame, refusal, status, here=_current_url(request))
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(refusal.retry_after)))
    return response


def _redirect_to_sign_in(request: Request) -> Response:
    """Send to the form everyone who does not come by a link of another site.

    With such a link a browser sends no cookies of ours. Once here, it may turn out to have some.
    """
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        return render_page("arriving.html", anonymous_frame(request), _current_url(request))
    return see_other(f"{SIGN_IN_URL}?next={quote(_return_url(request), safe='')}")


def _to_refused_error(error: Exception) -> RefusedError:
    if isinstance(error, AsyncJobError):
        return to_refused_error(error)
    if isinstance(error, RequestValidationError):
        return from_validation_error(error)
    log.error("page failed", exc_info=error)
    return RefusedError(problem_types.INTERNAL)


def _return_url(request: Request) -> str:
    """Return where to go on after signing in; a form that was being sent has to be sent again."""
    return _current_url(request) if request.method == "GET" else f"{PREFIX}/"


def _current_url(request: Request) -> str:
    """Return the page itself; of a form that was sent, an address that leads to its page."""
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")
