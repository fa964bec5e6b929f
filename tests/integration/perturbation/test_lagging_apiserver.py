"""An API server that lags, and what comes of a part that is moved there.

It shows what was where its watch cache answers, and else what is. Our parts never ask for what may
be the past; of two with a bug that do, one claims by version and one does not look again.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.names import API_VERSION, JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_perturbation.lagging import lagging_apiserver
from asyncjob_perturbation.plan import Part, When
from asyncjob_perturbation.processes import prepare
from support.cluster.api import Client
from support.cluster.installation import install
from support.judging.perturbed import CLAIM, at, outcomes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

FOREVER = 1e6
MAPS = "/api/v1/namespaces/default/configmaps"
ALL_JOBS = collection_path("default", JOBS)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    prepare()
    with ControlPlane() as plane:
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


@pytest.mark.soak
async def test_a_worker_that_is_shown_the_past_claims_what_it_is_shown_later(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    cases = [
        (at(CLAIM, When.STALE), ""),
        (at(CLAIM, When.STALE_START), ""),
        (at(CLAIM, When.STALE_START), "any version"),
        (at(CLAIM, When.STALE_START), "any version once"),
    ]
    came = await outcomes(control_plane, tmp_path, "retry", Part.WORKER, cases)
    assert all(outcome.reached for outcome in came)
    assert [outcome.failed for outcome in came] == [False, False, False, True], [
        (outcome.differences, outcome.broken, outcome.told) for outcome in came
    ]
    assert [str(one) for one in came[3].differences if "flaky phase" in one.where] == [
        "asyncjobs/flaky phase: expected 'Succeeded', came 'Queued'"
    ]
