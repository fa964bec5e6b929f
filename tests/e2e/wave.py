"""Five hundred jobs on their way while something breaks, and the verdict on what became of them."""

import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from asyncjob.lifecycle.timestamps import format_timestamp
from e2e.cluster import until
from e2e.lease_periods import Ends, LeasePeriod, broken_rules, ends, lease_periods, stolen
from e2e.recording import Recording, recorded
from e2e.release import JOBS, NAMESPACE, PODS, Release, as_json

SIZE = 500
UNDER_WAY = 100
"""So many have succeeded when the fault strikes, and most are still to come."""
AHEAD = timedelta(seconds=6)
END_SECONDS = 120.0


@dataclass(frozen=True)
class Flow:
    """Jobs under record, with all that became of them and of the release's pods."""

    release: Release
    jobs: Recording
    pods: Recording

    def succeeded(self) -> int:
        """Return how many have succeeded."""
        return self._phases()["Succeeded"]

    def until_succeeded(self, count: int, within: float = END_SECONDS) -> None:
        """Wait until so many have."""
        until(lambda: self.succeeded() >= count, within, self._told)

    def sums(self) -> Counter[str]:
        """Return, over all jobs, the attempts, and what was charged for them."""
        names = ("attempt", "retries", "crashes", "releases")
        latest = [job["status"] for job in self.jobs.latest.values()]
        return Counter({name: sum(status.get(name, 0) for status in latest) for name in names})

    def lease_periods(self) -> list[LeasePeriod]:
        """Return every attempt."""
        return lease_periods(list(self.jobs.seen))

    def container_ends(self) -> Ends:
        """Return when which worker's container was seen to have ended."""
        return ends(list(self.pods.seen))

    def complaints(self) -> list[str]:
        """Return broken rules, and attempts taken from workers that may have lived."""
        taken = stolen(self.lease_periods(), self.container_ends())
        return [*broken_rules(list(self.jobs.seen)), *taken]

    def _phases(self) -> Counter[str]:
        return Counter(job["status"]["phase"] for job in list(self.jobs.latest.values()))

    def _told(self) -> str:
        stuck = [job["status"] for job in self.jobs.latest.values() if "lease" in job["status"]]
        return f"{self._phases()}, running: {stuck[:3]}\n{self.release.describe()}"


@contextmanager
def flow(release: Release, selector: str) -> Iterator[Flow]:
    """Record the jobs that a selector of labels chooses, and the release's pods."""
    with (
        recorded(release.cluster, PODS) as pods,
        recorded(release.cluster, JOBS, selector) as jobs,
    ):
        yield Flow(release, jobs, pods)


@contextmanager
def wave(release: Release, seconds: int = 1) -> Iterator[Flow]:
    """Create the jobs in the background; enter once enough of them have succeeded.

    Most take so many seconds. With more, fewer are claimed and finished in any of them.
    """
    name = f"wave-{uuid.uuid4().hex[:6]}"
    create = partial(
        release.cluster.kubectl,
        "create",
        "--filename=-",
        "--output=name",
        input=_bodies(name, seconds),
    )
    with flow(release, f"wave={name}") as flowing, ThreadPoolExecutor(1) as pool:
        creation = pool.submit(create)
        flowing.until_succeeded(UNDER_WAY)
        assert flowing.succeeded() < SIZE
        yield flowing
        creation.result()


def _bodies(name: str, seconds: int) -> str:
    start = format_timestamp(datetime.now(UTC) + AHEAD)
    return as_json([_body(name, number, seconds, start) for number in range(SIZE)])


def _body(name: str, number: int, seconds: int, start: str) -> dict[str, Any]:
    """Return a job; some take longer than a drain, some need the operator to start."""
    spec: dict[str, Any] = {
        "type": "sleep",
        "payload": {"seconds": 5 if number % 20 == 7 else seconds},
        "retryPolicy": {"initialDelaySeconds": 1},
        **({"notBefore": start} if number % 10 == 0 else {}),
    }
    metadata = {"name": f"{name}-{number}", "namespace": NAMESPACE, "labels": {"wave": name}}
    kind = {"apiVersion": "asyncjob.dev/v1alpha1", "kind": "AsyncJob"}
    return {**kind, "metadata": metadata, "spec": spec}
