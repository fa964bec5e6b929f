"""How long the demo waits: for as long as jobs get on, whatever else the machine does."""

from dataclasses import dataclass, field
from subprocess import CompletedProcess
from typing import Any, cast

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.demo.view import View, is_finished, watch_until

PATIENCE = 40.0


@dataclass
class SlowCluster:
    """A job that is looked at each 30 s; `percents` are how far it is, None at its end."""

    percents: list[int | None]
    now: float = 0.0
    looks: int = field(default=0)

    @property
    def api(self) -> "SlowCluster":
        return self

    def get(self, _path: str) -> dict[str, Any]:
        percent = self.percents[min(self.looks, len(self.percents) - 1)]
        self.looks += 1
        running = {"phase": "Running", "attempt": 1, "progress": {"percent": percent}}
        status = {"phase": "Succeeded", "attempt": 1} if percent is None else running
        meta = {"name": "slow", "resourceVersion": str(self.looks)}
        spec = {"type": "slow.count"}
        return {"items": [{"metadata": meta, "spec": spec, "status": status}]}

    def kubectl(self, *_words: str) -> CompletedProcess[str]:
        return CompletedProcess([], 0, "slow", "")

    def show(self, _text: str) -> None:
        pass

    def sleep(self, _seconds: float) -> None:
        self.now += 30.0

    def ends_well(self) -> bool:
        plane, view = cast("ControlPlane", self), cast("View", self)
        return watch_until(
            plane,
            view,
            lambda jobs: is_finished(jobs["slow"]),
            PATIENCE,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_a_job_that_gets_on_slowly_is_waited_for() -> None:
    cluster = SlowCluster([10, 20, 30, 40, 50, None])
    assert cluster.ends_well()
    assert cluster.now > PATIENCE


def test_a_job_that_only_renews_its_lease_is_not_waited_for_any_longer() -> None:
    cluster = SlowCluster([10, 20])
    assert not cluster.ends_well()
    assert cluster.now == 30.0 + 60.0
