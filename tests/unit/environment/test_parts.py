"""What `make up` starts: so many workers for each queue, told apart by name."""

import pytest
from click.testing import CliRunner

from asyncjob_dev import cli
from asyncjob_dev.environment.parts import workers
from asyncjob_dev.environment.settings import Settings


def test_each_queue_has_workers_of_its_own() -> None:
    specs = workers(Settings(workers=2, queues="default,api"))
    assert [spec.name for spec in specs] == ["worker-1", "worker-2", "worker-api-1", "worker-api-2"]
    served = [word for spec in specs for word in spec.argv if word.startswith("--queue=")]
    assert served == ["--queue=default", "--queue=default", "--queue=api", "--queue=api"]


@pytest.mark.parametrize("queues", ["", "a,", "a,a", "A", "a b", "x" * 41])
def test_what_is_no_list_of_queues_is_refused(queues: str) -> None:
    done = CliRunner().invoke(cli.main, ["up", "--queues", queues])
    assert done.exit_code == 2
    assert "is no list of different queues, such as default,mail" in done.output
