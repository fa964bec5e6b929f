"""The release that waits for an approval: as a manifest is, and as a test of one's own would be."""

from typing import Any

import pytest
from examples.handlers.release import app

from asyncjob.lifecycle.phases import Phase
from asyncjob.testing import FakeCluster, FakeJob, run_handler

RELEASE = {"service": "shop", "version": "7"}


async def parked(cluster: FakeCluster) -> FakeJob:
    job = await cluster.submit("release.deploy", RELEASE)
    await cluster.run_until(lambda: bool(job.status.waiting))
    assert (job.phase, list(job.steps)) == (Phase.PENDING, ["plan"])
    return job


async def test_it_is_deployed_once_somebody_has_approved() -> None:
    async with FakeCluster(app) as cluster:
        job = await parked(cluster)
        await job.signal("approval", {"ok": True}, sent_by="ada")
        await cluster.run_until_idle()
    assert job.result == "shop has 7, approved by ada"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"ok": False, "note": "on Monday"}, "bob has refused shop -> 7: on Monday"),
        ({"ok": "perhaps"}, "signal 'approval' from bob cannot be taken"),
        ({}, "signal 'approval' from bob cannot be taken"),
    ],
)
async def test_it_is_not_deployed_if_somebody_refuses_or_says_something_else(
    payload: Any, said: str
) -> None:
    async with FakeCluster(app) as cluster:
        job = await parked(cluster)
        await job.signal("approval", payload, sent_by="bob")
        await cluster.run_until_idle()
    assert job.phase is Phase.DEAD_LETTER
    assert said in (job.message or "")
    assert list(job.steps) == ["plan"]


async def test_it_gives_up_after_three_days_and_asks_again_after_a_redrive() -> None:
    async with FakeCluster(app) as cluster:
        job = await parked(cluster)
        began = cluster.clock.now
        await cluster.run_until_idle()
        assert "nobody has approved shop -> 7" in (job.message or "")
        assert 3 <= (cluster.clock.now - began).total_seconds() / 86_400 < 3.01
        await job.redrive()
        await cluster.run_until(lambda: bool(job.status.waiting))
        await job.signal("approval", {"ok": True}, sent_by="ada")
        await cluster.run_until_idle()
    assert job.phase is Phase.SUCCEEDED


async def test_a_handler_is_tested_with_a_signal_that_is_there() -> None:
    run = await run_handler(app, "release.deploy", RELEASE, signals={"approval": {"ok": True}})
    assert (run.result, list(run.steps)) == (
        "shop has 7, approved by somebody",
        ["plan", "install"],
    )
