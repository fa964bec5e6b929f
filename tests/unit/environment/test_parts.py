"""What `make up` starts: so many workers for each queue, told apart by name."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncjob_dev import cli
from asyncjob_dev.environment.components import SERVICES, worker_specs
from asyncjob_dev.environment.environment import link
from asyncjob_dev.environment.settings import EnvironmentSettings


def test_each_queue_has_workers_of_its_own() -> None:
    specs = worker_specs(EnvironmentSettings(workers=2, queues="default,api"))
    assert [spec.name for spec in specs] == ["worker-1", "worker-2", "worker-api-1", "worker-api-2"]
    served = [word for spec in specs for word in spec.argv if word.startswith("--queue=")]
    assert served == ["--queue=default", "--queue=default", "--queue=api", "--queue=api"]


def test_workers_read_from_the_folder_that_is_named_and_from_no_other() -> None:
    [named] = worker_specs(EnvironmentSettings(workers=1, readable="/project/data"))
    [other] = worker_specs(EnvironmentSettings(workers=1))
    assert "--payload-prefix=file:///project/data" in named.argv
    assert not [word for word in other.argv if word.startswith("--payload-prefix")]


def test_the_gateway_is_open_to_this_machine_only() -> None:
    [gateway] = [
        spec
        for spec in (build(EnvironmentSettings(gateway_port=8123)) for build in SERVICES)
        if spec.name == "gateway"
    ]
    assert {"--open", "--host=127.0.0.1", "--port=8123"} <= set(gateway.argv)
    assert gateway.service_account == "asyncjob-gateway"


@pytest.mark.parametrize("queues", ["", "a,", "a,a", "A", "a b", "x" * 41])
def test_what_is_no_list_of_queues_is_refused(queues: str) -> None:
    done = CliRunner().invoke(cli.main, ["up", "--queues", queues])
    assert done.exit_code == 2
    assert "is no list of different queues, such as default,mail" in done.output


def test_a_kubectl_that_is_found_by_our_own_link_stays(tmp_path: Path) -> None:
    program, ours = tmp_path / "kubectl-v1", tmp_path / "bin" / "kubectl"
    program.touch()
    ours.parent.mkdir()
    link(ours, program)
    link(ours, ours)  # the folder is on the PATH, as the tutorial says
    assert ours.resolve() == program
    other = tmp_path / "kubectl-v2"
    other.touch()
    link(ours, other)
    assert ours.resolve() == other
