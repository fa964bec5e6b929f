"""`kopf run -m asyncjob_operator.kopf_handlers` does what `asyncjob-operator run` does."""

import json
import socket
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.ports import free_port
from support.driven.crons import Crons
from support.driven.jobs import Jobs, now, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def alive(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/alive", timeout=5) as answer:
            return bool(json.loads(answer.read()) == {"loops": "ok"})
    except URLError:
        return False


@pytest.mark.parametrize("job_watch", ["direct", "kopf"])
def test_run_by_kopf_it_acts_on_what_it_sees_tells_that_it_lives_and_ends_on_sigterm(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path, job_watch: str
) -> None:
    jobs, port = Jobs(fragile_plane.api), free_port()
    options = (
        *QUICK,
        f"--namespace={jobs.namespace}",
        f"--lease-namespace={jobs.namespace}",
        f"--job-watch={job_watch}",
    )
    operator = OperatorProcess(operator_access, tmp_path / "log", *options)
    liveness = f"--liveness=http://127.0.0.1:{port}/alive"
    with operator.run_by_kopf(f"--namespace={jobs.namespace}", "--standalone", liveness):
        operator.until_ready().until_leading()
        until(lambda: alive(port), 10)
        jobs.create("later", notBefore=now(3))
        jobs.until_phase("later", "Scheduled", within=15)
        jobs.until_phase("later", "Queued", within=15)
        crons = Crons(jobs)
        crons.create("daily")
        crons.change("daily", trigger=1)
        assert crons.until_runs("daily", 1)[0]["metadata"]["name"] == "daily-t1"
        assert operator.stop() == 0
    assert "Traceback" not in operator.logs()
    assert "stopped" in operator.logs()


def test_kopf_that_is_told_other_namespaces_than_the_operator_ends_and_says_so(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    assert fragile_plane.url
    operator = OperatorProcess(operator_access, tmp_path / "log", "--namespace=one")
    with operator.run_by_kopf("--namespace=other", "--standalone"):
        assert operator.process
        assert operator.process.wait(30) == 1
    assert "kopf run watches other" in operator.logs()


def test_an_error_at_the_start_ends_the_process(operator_access: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # as the operator does
        taken.listen()
        port = f"--health-port={taken.getsockname()[1]}"  # the last of two counts
        operator = OperatorProcess(operator_access, tmp_path / "log", port)
        with operator:
            assert operator.process
            assert operator.process.wait(60) == 1
    assert "address already in use" in operator.logs()
