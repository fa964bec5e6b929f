"""The same commands through a gateway: everything but what goes straight to the cluster."""

from pathlib import Path

import pytest

from asyncjob.cli.entry import run
from asyncjob_dev.ports import free_port
from support.processes.gateway import GatewayProcess
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration


@pytest.mark.timeout(120)  # starts a gateway, too
def test_commands_go_through_a_gateway_and_say_where_it_is_not(
    ns: WorkerNamespace,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "gateway.log"
    log.touch()

    def say(*words: str, code: int = 0) -> str:
        assert run(words, "asyncjob") == code, "".join(capfd.readouterr())
        said, complaint = capfd.readouterr()
        return said + complaint

    with GatewayProcess(kubeconfig, log, "--open") as gateway:
        gateway.until_ready()
        monkeypatch.setenv("ASYNCJOB_SERVER", gateway.url)
        assert "Succeeded" in say("submit", "flaky.call", "failures:=0", "--name=behind", "--wait")
        assert "behind exists" in say("submit", "flaky.call", "failures:=0", "--name=behind")
        assert '"answer": "pong"' in say("result", "behind")
        assert "Created" in say("history", "behind")
        assert "behind-r1" in say("rerun", "behind", "--wait")
        assert "worker-0" in say("workers")
        assert "behind" in say("list", "--text=behind", "-o", "name")
        say("get", "nobody", code=3)
        say("cancel", "behind", code=9)
        assert "Gateway" in say("doctor", "-o", "json")
        assert "no cron job x" in say("cron", "backfill", "x", "--from=-2d", "--to=-1d", code=3)
    nowhere = f"--server=http://127.0.0.1:{free_port()}"
    assert "does not answer as a gateway" in say("doctor", nowhere, code=1)
