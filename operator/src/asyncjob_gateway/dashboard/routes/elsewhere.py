"""Style sheet and scripts, the gateway's front door, and pages that do not exist."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway import kinds
from asyncjob_gateway.dashboard.assets import FOR_EVER, TYPES, address, assets, version
from asyncjob_gateway.dashboard.links import PREFIX, Links, page_of_form
from asyncjob_gateway.dashboard.page import see
from asyncjob_gateway.dashboard.route import OpenRoute, wants_page
from asyncjob_gateway.errors import RefusedError

router = APIRouter(route_class=OpenRoute)
ROUTERS = (router,)


@router.get("/")
async def front_door(request: Request) -> Response:
    """Send whoever opens the gateway in a browser to the dashboard."""
    if not wants_page(request):
        raise RefusedError(kinds.NOT_FOUND)
    return see(f"{PREFIX}/")


@router.get("/favicon.ico")
async def icon() -> Response:
    """Send browsers that ask by themselves to the icon."""
    return see(f"{address()}/icon.svg")


@router.get(PREFIX + "/static/{release}/{name}")
async def static(release: str, name: str) -> Response:
    """Return a file. One of an earlier release is not kept for ever under its old address."""
    content = assets().get(name)
    if content is None:
        raise RefusedError(kinds.NOT_FOUND, f"there is no file {name[:64]}")
    kept = FOR_EVER if release == version() else "no-store"
    return Response(content, 200, {"Cache-Control": kept}, TYPES[name.rpartition(".")[2]])


@router.get(PREFIX + "/{path:path}")
async def nowhere(request: Request) -> Response:
    """Say that there is no such page, unless it is where a form was sent."""
    path = request.url.path.removeprefix(PREFIX)
    if page := page_of_form(path):
        return see(Links(request.query_params.get("namespace") or None).to(page))
    raise RefusedError(kinds.NOT_FOUND, f"there is no page {request.url.path[:200]}")
