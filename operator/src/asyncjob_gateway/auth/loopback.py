"""Guards a gateway that is open: a page of any site can make a browser on this machine ask it.

By a name that is made to resolve to loopback (DNS rebinding) it would even read the answers; hence
only loopback's own names are answered, and no request that another site began.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.settings import is_loopback
from asyncjob_gateway.urls import split_url

_ALLOWED_FETCH_SITES: Final = frozenset({"same-origin", "none"})


class LoopbackOnlyMiddleware:
    """Serves an app to programs and pages of this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises RefusedError where a foreign page may be behind it."""
        if scope["type"] == "http":
            _check_same_machine(Headers(scope=scope))
        await self._app(scope, receive, send)


def _check_same_machine(headers: Headers) -> None:
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_loopback(split_url(f"//{host}").hostname or ""):
        detail = "use the host localhost or 127.0.0.1; other hosts need authentication"
        raise RefusedError(problem_types.FOREIGN_REQUEST, detail)
    foreign = origin is not None and split_url(origin).netloc != host
    if foreign or headers.get("sec-fetch-site", "none") not in _ALLOWED_FETCH_SITES:
        raise RefusedError(
            problem_types.FOREIGN_REQUEST, "a page of another site is behind this request"
        )
