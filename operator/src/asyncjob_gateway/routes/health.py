"""Whether the process lives, and whether it should be sent requests. Open to everyone."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from asyncjob_gateway.context import context_of
from asyncjob_gateway.problems.declared import Responses

router = APIRouter(tags=["health"])

_RESPONSES: Final[Responses] = {
    200: {"content": {"text/plain": {"example": "ok"}}, "description": "It does."}
}
_NOT_READY: Final[Responses] = {
    503: {"content": {"text/plain": {}}, "description": "Not now; the body says why."}
}


@router.get(
    "/healthz", response_class=PlainTextResponse, responses=_RESPONSES, summary="Does it live?"
)
async def healthz() -> PlainTextResponse:
    """Answer as long as the process can answer at all."""
    return PlainTextResponse("ok")


@router.get(
    "/readyz",
    response_class=PlainTextResponse,
    responses={**_RESPONSES, **_NOT_READY},
    summary="Can it be sent requests?",
)
async def readyz(request: Request) -> PlainTextResponse:
    """Answer 503 until all jobs have been listed once, and from SIGTERM on."""
    context = context_of(request)
    if context.state.stopping:
        return PlainTextResponse("stopping", 503)
    missing = sorted(name for name, view in context.views.items() if not view.synced)
    if missing:
        return PlainTextResponse(f"not listed yet: {', '.join(missing)}", 503)
    return PlainTextResponse("ok")
