"""Static files, the redirect from the gateway's root, and pages that do not exist."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway import problem_types
from asyncjob_gateway.dashboard.layout import see_other
from asyncjob_gateway.dashboard.links import (
    IMMUTABLE,
    MEDIA_TYPES,
    PREFIX,
    Links,
    assets,
    assets_url,
    assets_version,
    page_path_of_form,
)
from asyncjob_gateway.dashboard.page_route import PublicPageRoute, wants_page
from asyncjob_gateway.errors import RefusedError

router = APIRouter(route_class=PublicPageRoute)
ROUTERS = (router,)


@router.get("/")
async def redirect_to_dashboard(request: Request) -> Response:
    """Send anyone who opens the gateway in a browser to the dashboard."""
    if not wants_page(request):
        raise RefusedError(problem_types.NOT_FOUND)
    return see_other(f"{PREFIX}/")


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Send browsers that ask by themselves to the icon."""
    return see_other(f"{assets_url()}/icon.svg")


@router.get(PREFIX + "/static/{release}/{name}")
async def static_file(release: str, name: str) -> Response:
    """Return a file. One of an earlier release is not kept forever under its old address."""
    content = assets().get(name)
    if content is None:
        raise RefusedError(problem_types.NOT_FOUND, f"file {name[:64]} does not exist")
    kept = IMMUTABLE if release == assets_version() else "no-store"
    return Response(content, 200, {"Cache-Control": kept}, MEDIA_TYPES[name.rpartition(".")[2]])


@router.get(PREFIX + "/{path:path}")
async def not_found(request: Request) -> Response:
    """Say that there is no such page, unless it is where a form was sent."""
    path = request.url.path.removeprefix(PREFIX)
    if page := page_path_of_form(path):
        return see_other(Links(request.query_params.get("namespace") or None).to(page))
    raise RefusedError(problem_types.NOT_FOUND, f"page {request.url.path[:200]} does not exist")
