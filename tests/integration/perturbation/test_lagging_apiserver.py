"""An API server that lags shows what was where its watch cache answers, and else what is."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.names import API_VERSION, JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_perturbation.lagging import lagging_apiserver
from support.api import Client
from support.installation import install

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FOREVER = 1e6
MAPS = "/api/v1/namespaces/default/configmaps"
ALL_JOBS = collection_path("default", JOBS)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(ControlPlaneOptions(with_controller_manager=False)) as plane:
        install(plane)
        yield plane


def job(name: str) -> dict[str, Any]:
    body = {"apiVersion": API_VERSION, "kind": "AsyncJob", "metadata": {"name": name}}
    return {**body, "spec": {"type": "echo"}}


async def names(client: Client, path: str, **query: str) -> set[str]:
    # In a thread: what it asks for passes the proxy in this one.
    answer = await asyncio.to_thread(client.get, path, **query)
    return {one["metadata"]["name"] for one in answer.object()["items"]}


async def test_watches_of_what_parts_watch_lag_and_nothing_else_does(
    control_plane: ControlPlane,
) -> None:
    now = Client(control_plane.url, control_plane.ca_file, control_plane.admin_token)
    now.create(ALL_JOBS, job("first")).object()
    async with lagging_apiserver(control_plane, FOREVER) as url:
        lagging = Client(url, now.ca_file, now.token)
        assert await names(lagging, ALL_JOBS, resourceVersion="0") == {"first"}
        now.create(ALL_JOBS, job("second")).object()
        now.create(MAPS, {"metadata": {"name": "map"}}).object()
        while "map" not in await names(lagging, MAPS, resourceVersion="0"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert await names(lagging, ALL_JOBS) == {"first", "second"}
        assert await names(lagging, ALL_JOBS, resourceVersion="0") == {"first"}
        third = await asyncio.to_thread(lagging.create, ALL_JOBS, job("third"))
        assert third.accepted, third.message
        assert await names(now, ALL_JOBS) == {"first", "second", "third"}
