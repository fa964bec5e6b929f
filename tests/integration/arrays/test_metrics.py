"""What the operator says of arrays to Prometheus, while they run and afterwards."""

import pytest

from support.driven.arrays import Arrays
from support.driven.jobs import until
from support.processes.operator import OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_metrics_follow_an_array(arrays: Arrays, operator: OperatorProcess) -> None:
    queue = {"namespace": arrays.ns.namespace, "queue": "default"}

    def shown(name: str, **labels: str) -> float:
        return operator.metric(f"asyncjob_{name}", **queue, **labels)

    arrays.create("all", "picky", 10, chunkSize=2, parallelism=3)
    until(lambda: shown("array_open_chunks") == 3, 20, "three open chunks")
    assert (shown("arrays", phase="Pending"), shown("arrays", phase="Running")) == (0, 1)
    assert (shown("array_items_left"), shown("array_items_total", outcome="failed")) == (10, 0)
    until(lambda: shown("array_idle_seconds") > 0, 20, "nothing of it runs")
    arrays.ask("all", suspend=True)
    until(lambda: shown("array_idle_seconds") == 0, 20, "it is suspended")
    arrays.ask("all", suspend=False)
    (arrays.ns.folder / "failing").write_text("3 4")
    arrays.worker()
    arrays.until_phase("all", "Failed")
    until(lambda: shown("arrays", phase="Failed") == 1, 20, "it has failed")
    counted = [shown("array_items_total", outcome=one) for one in ("succeeded", "failed")]
    assert counted == [8, 2]
    left = [shown(f"array_{one}") for one in ("items_left", "open_chunks", "idle_seconds")]
    assert left == [0, 0, 0]
