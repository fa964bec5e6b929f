"""Everything is replaced while clients submit and jobs run, and none is the worse for it."""

import pytest

from e2e.load import Load, load
from e2e.release import NAMESPACE, RELEASE, Object, Release

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

ROLLED = "--set-string=podDefaults.annotations.rolled=yes"
LEAST = 100
LONG = 12
"""Under way on all workers, so that each one that goes has some to give back."""


def judge(loaded: Load) -> None:
    """Every submission was accepted and is one job, which succeeded without a crash or theft."""
    report = loaded.end()
    jobs = loaded.flow.release.jobs(f"load={loaded.name}")
    assert report.failed == []
    assert {job["spec"]["idempotencyKey"]: name for name, job in jobs.items()} == report.accepted
    assert len(jobs) > LEAST
    assert loaded.flow.complaints() == []
    sums = loaded.flow.sums()
    assert (sums["crashes"], sums["retries"]) == (0, 0)
    assert sums["attempt"] == len(jobs) + sums["releases"]


def test_an_upgrade_that_replaces_every_pod_loses_and_repeats_nothing(whole: Release) -> None:
    before = whole.uids()
    with load(whole, LONG) as loaded:
        whole.upgrade(ROLLED)
        whole.until_whole()
        assert not before & whole.uids()
        loaded.until_more()
        judge(loaded)
        assert loaded.flow.sums()["releases"]


def test_no_client_sees_a_rolling_restart_of_the_gateway(whole: Release) -> None:
    before = uids(whole.pods("gateway"))
    with load(whole) as loaded:
        deployment = f"deployment/{RELEASE}-gateway"
        whole.cluster.kubectl("rollout", "restart", deployment, f"--namespace={NAMESPACE}")
        whole.until_whole()
        assert not before & uids(whole.pods("gateway"))
        loaded.until_more()
        judge(loaded)


def uids(pods: list[Object]) -> set[str]:
    return {str(pod["metadata"]["uid"]) for pod in pods}
