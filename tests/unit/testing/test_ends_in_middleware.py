"""What a middleware sees of handlers that park or stop, in the test kit: as in a worker."""

from collections.abc import Iterator

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.testing import FakeCluster
from support.apps.translating import KINDS, WAITS, app, seen


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_park_is_no_exception_to_a_middleware(kind: str, wait: str) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(kind, wait)
        await cluster.run_until(lambda: bool(job.status.waiting))
        assert (job.status.parks, seen) == (1, [])
        if wait == "signal":
            await job.signal("go")
        await cluster.run_until_idle()
    assert (job.phase, job.result, seen) == (Phase.SUCCEEDED, "done", [])


@pytest.mark.parametrize("kind", KINDS)
async def test_nor_is_a_handler_that_is_cancelled(kind: str) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(kind, "cancelled", retry_policy={"maxRetries": 0})
        await cluster.run_until_idle()
    assert job.status.error is not None
    assert job.status.error.type == "HandlerExitError"
    assert "cancelled itself" in job.status.error.message
    assert seen == []
