"""The list of arrays, the page of one array, and what its buttons do."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from asyncjob.rest.arrays import ArraySelection
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.listing import array_page
from asyncjob_gateway.dashboard.layout import render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import form_context, page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.views.arrays import make_array_list, make_array_page
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.routes.api_route import ArrayName

router = APIRouter(prefix=f"{PREFIX}/arrays", route_class=PageRoute)
ROUTERS = (router,)

ARRAY_ROWS: Final = 50

ArrayAction = Callable[[Operations, str], Awaitable[object]]

_ACTIONS: Final[dict[str, tuple[ArrayAction, str]]] = {
    "cancel": (Operations.cancel_array, "array-cancelled"),
    "redrive": (Operations.redrive_array, "array-redriven"),
    "suspend": (
        lambda operations, name: operations.set_array_suspended(name, suspended=True),
        "array-suspended",
    ),
    "resume": (
        lambda operations, name: operations.set_array_suspended(name, suspended=False),
        "array-resumed",
    ),
}
_ActionName = Annotated[str, Path(pattern=f"^({'|'.join(_ACTIONS)})$")]


@router.get("")
async def show_arrays(request: Request) -> Response:
    """Show a page of the list, newest first."""
    ctx = await page_context(request, rights.LIST_ARRAYS)
    cache, cursor = ctx.request_context.cache, request.query_params.get("cursor", "")
    cache.require_synced()
    page = array_page(cache.arrays(), ArraySelection(), cursor or None, ARRAY_ROWS)
    shown = make_array_list(page, ctx.links, ctx.now, cursor=cursor)
    return render_page("arrays.html", ctx.frame, shown)


@router.get("/{name}")
async def show_array(request: Request, name: ArrayName) -> Response:
    """Show an array as it is now."""
    ctx = await page_context(request, rights.READ_ARRAYS)
    read = await ctx.request_context.operations.array(name)
    if not ctx.allowed.read_payload:
        read = read.without_payload()
    shown = make_array_page(read, ctx.allowed, ctx.links, ctx.now)
    return render_page("array.html", ctx.frame, shown)


@router.post("/{name}/{action}")
async def act_on_array(request: Request, name: ArrayName, action: _ActionName) -> Response:
    """Do one of the things that can be asked of it, and show it."""
    ctx, _ = await form_context(request, rights.CONTROL_ARRAYS)
    act, did = _ACTIONS[action]
    await act(ctx.request_context.operations, name)
    return see_other(ctx.links.array(name, {"did": did}))
