"""How each page is entered and left: who reads is known first, and errors are pages, too.

Programs that do not ask for HTML get the same problems as from REST.
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
from asyncjob_gateway import kinds
from asyncjob_gateway.context import identify
from asyncjob_gateway.dashboard.cookies import headers_of, keep_form_token
from asyncjob_gateway.dashboard.entering import bare_frame
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import guard, page, see
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import answer
from asyncjob_gateway.problems.translate import from_validation, refusal_of

log = structlog.get_logger()

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

SIGN_IN = f"{PREFIX}/sign-in"


class OpenRoute(APIRoute):
    """A page for everyone."""

    signed_in: ClassVar[bool] = False

    def get_route_handler(self) -> Handler:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def serve(request: Request) -> Response:
            try:
                await self._identify(request)
                response = await handle(request)
            except Exception as error:  # noqa: BLE001  # a person is told of it by a page
                response = _failed(request, error)
            keep_form_token(request, response)
            return guard(response)

        return serve

    async def _identify(self, request: Request) -> None:
        if self.signed_in:
            await identify(request, headers_of(request))


class PageRoute(OpenRoute):
    """A page for those who have signed in, or whom a proxy vouches for by their token."""

    signed_in: ClassVar[bool] = True


def wants_page(request: Request) -> bool:
    """Return whether a person asks, by a browser; else it is a program."""
    return "text/html" in request.headers.get("accept", "")


def _failed(request: Request, error: Exception) -> Response:
    refusal = _refusal(error)
    if not wants_page(request):
        return answer(refusal, request.url.path)
    if refusal.kind is kinds.UNAUTHENTICATED:
        return _to_sign_in(request)
    frame, status = bare_frame(request), refusal.kind.status
    response = page("problem.html", frame, refusal, status, here=_here(request))
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(refusal.retry_after)))
    return response


def _to_sign_in(request: Request) -> Response:
    """Send to the form whoever does not come by a link of another site.

    With such a link a browser sends no cookies of ours. Once here, it may turn out to have some.
    """
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        return page("arriving.html", bare_frame(request), _here(request))
    return see(f"{SIGN_IN}?next={quote(_back(request), safe='')}")


def _refusal(error: Exception) -> RefusedError:
    if isinstance(error, AsyncJobError):
        return refusal_of(error)
    if isinstance(error, RequestValidationError):
        return from_validation(error)
    log.error("page failed", exc_info=error)
    return RefusedError(kinds.INTERNAL)


def _back(request: Request) -> str:
    """Return where to go on after signing in; a form that was being sent has to be sent again."""
    return _here(request) if request.method == "GET" else f"{PREFIX}/"


def _here(request: Request) -> str:
    """Return the page itself; of a form that was sent, an address that leads to its page."""
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")
