"""Whether the process lives, and whether it should be sent requests. Open to everyone."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from asyncjob_gateway.context import app_context
from asyncjob_gateway.openapi import Responses

router = APIRouter(tags=["health"])

_OK_RESPONSE: Final[Responses] = {
    200: {"content": {"text/plain": {"example": "ok"}}, "description": "It does."}
}
_NOT_READY_RESPONSE: Final[Responses] = {
    503: {"content": {"text/plain": {}}, "description": "Not now; the body says why."}
}


@router.get(
    "/healthz", response_class=PlainTextResponse, responses=_OK_RESPONSE, summary="Does it live?"
)
async def healthz() -> PlainTextResponse:
    """Answer as long as the process can answer at all."""
    return PlainTextResponse("ok")


@router.get(
    "/readyz",
    response_class=PlainTextResponse,
    responses={**_OK_RESPONSE, **_NOT_READY_RESPONSE},
    summary="Can it be sent requests?",
)
async def readyz(request: Request) -> PlainTextResponse:
    """Answer 503 until all jobs have been listed once, and from SIGTERM on."""
    context = app_context(request)
    if context.state.stopping:
        return PlainTextResponse("stopping", 503)
    missing = sorted(name for name, view in context.caches.items() if not view.synced)
    if missing:
        return PlainTextResponse(f"not listed yet: {', '.join(missing)}", 503)
    return PlainTextResponse("ok")
