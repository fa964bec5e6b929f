"""The last tests: what the cron job has done meanwhile, and what uninstalling leaves behind."""

import json
from datetime import timedelta
from itertools import pairwise

import pytest

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob_dev.environment.settings import ROOT
from e2e.cluster import until
from e2e.release import CHART, NAMESPACE, RELEASE, Release

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

SCHEDULED = "asyncjob.dev/cron-job=minutely"
TIME = "asyncjob.dev/scheduled-time"
FORGETTING = ("crds.keep=false", "policies.keep=false", "preflight.enabled=false")
KINDS = {f"{path.stem}.asyncjob.dev" for path in (ROOT / "crds").glob("async*.yaml")}


def test_each_minute_has_had_one_job_whatever_was_killed_meanwhile(last_use: Release) -> None:
    until(lambda: last_use.jobs(SCHEDULED), 75.0, last_use.describe)
    runs = list(last_use.jobs(SCHEDULED).values())
    times = sorted(parse_timestamp(run["metadata"]["annotations"][TIME]) for run in runs)
    assert {after - before for before, after in pairwise(times)} <= {timedelta(minutes=1)}


def test_uninstalling_leaves_jobs_and_kinds_unless_asked_not_to(last_use: Release) -> None:
    jobs = set(last_use.jobs())
    last_use.helm("uninstall", RELEASE, "--wait")
    assert last_use.cluster.items(NAMESPACE, "deployments") == []
    assert jobs <= set(last_use.jobs())
    assert kinds(last_use) == KINDS
    assert policies(last_use)

    last_use.helm("install", RELEASE, str(CHART), *(f"--set={value}" for value in FORGETTING))
    assert jobs <= set(last_use.jobs())
    last_use.helm("uninstall", RELEASE)
    until(lambda: not kinds(last_use), 120.0, lambda: f"left: {kinds(last_use)}")
    assert policies(last_use) == set()


def kinds(release: Release) -> set[str]:
    """Return the project's CRDs that there are."""
    return _named(release, "customresourcedefinitions")


def policies(release: Release) -> set[str]:
    """Return the project's admission policies that there are."""
    return _named(release, "validatingadmissionpolicies")


def _named(release: Release, plural: str) -> set[str]:
    found = json.loads(release.cluster.kubectl("get", plural, "--output=json"))["items"]
    names = {str(item["metadata"]["name"]) for item in found}
    return {name for name in names if name.endswith("asyncjob.dev")}
