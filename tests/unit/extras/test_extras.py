"""Each extra of asyncjob-sdk in an environment that has nothing else, and none where it lacks."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.processes.clean_environment import CleanEnvironment, environment_with

USES = {
    "kubernetes": "from asyncjob import KubernetesJobsClient",
    "handlers": "from asyncjob import WorkerApp; from asyncjob.testing import FakeCluster",
    "offload": "from asyncjob.offload.store import check_driver; check_driver('file')",
    "metrics": "from asyncjob.metrics.prometheus import counter",
    "tracing": (
        "from asyncjob.tracing.provider import set_up_tracing;"
        "set_up_tracing({'OTEL_TRACES_EXPORTER': 'otlp'}, 'mine', 'asyncjob-sdk')"
    ),
}
"""A line that uses what an extra brings."""

EVERY_MODULE = """
import importlib, pkgutil
import asyncjob
from asyncjob.extras import MissingExtraError

APART = ("asyncjob.cli.", "asyncjob.tracing.export", "asyncjob.tracing.spans", "asyncjob.schema.")
for module in pkgutil.walk_packages(asyncjob.__path__, "asyncjob.", onerror=lambda name: None):
    if module.name.startswith(APART):
        continue  # their own ways in say what is missing: cli.main, tracing.provider
    try:
        importlib.import_module(module.name)
    except MissingExtraError:
        pass
    else:
        print(module.name)
"""

SUBMIT = """
import sys
from asyncjob import AsyncJobsClient, JobsClient

with JobsClient(sys.argv[1], token="t") as jobs:
    print(jobs.submit("echo", {"n": [1.5, 1e16]}, deduplication_id="one").id)
"""


class Gateway(http.server.BaseHTTPRequestHandler):
    """Take every job."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"id": "echo-1", "created": true, "phase": "Queued"}'
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def gateway() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


Environments = Callable[[str], CleanEnvironment]


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    made: dict[str, CleanEnvironment] = {}

    def get(requirement: str) -> CleanEnvironment:
        if requirement not in made:
            made[requirement] = environment_with(tmp_path_factory.mktemp("packages"), requirement)
        return made[requirement]

    return get


def test_the_bare_installation_has_httpx_and_pydantic_and_what_these_need(
    environments: Environments,
) -> None:
    names = environments("asyncjob-sdk").names
    assert {"httpx", "pydantic"} <= names
    assert names <= {
        *("annotated-types", "anyio", "certifi", "h11", "httpcore", "httpx", "idna"),
        *("pydantic", "pydantic-core", "typing-extensions", "typing-inspection"),
    }


def test_the_bare_installation_submits_jobs_to_a_gateway(
    environments: Environments, gateway: str
) -> None:
    done = environments("asyncjob-sdk").run("-c", SUBMIT, gateway)
    assert (done.returncode, done.stdout) == (0, "echo-1\n"), done.stderr


def test_each_module_is_there_or_says_what_to_install(environments: Environments) -> None:
    done = environments("asyncjob-sdk").run("-c", EVERY_MODULE)
    assert done.returncode == 0, done.stderr
    there = set(done.stdout.split())
    assert {"asyncjob.client.rest.client", "asyncjob.models.job", "asyncjob.rules.rule"} <= there


@pytest.mark.parametrize("extra", USES)
def test_what_an_extra_brings_names_it_without_it_and_works_with_it(
    environments: Environments, extra: str, tmp_path: Path
) -> None:
    refused = environments("asyncjob-sdk").run("-c", USES[extra])
    assert refused.returncode == 1
    said = refused.stderr.splitlines()[-1]
    assert f"pip install 'asyncjob-sdk[{extra}]'" in said
    done = environments(f"asyncjob-sdk[{extra}]").run("-c", USES[extra])
    assert done.returncode == 0, done.stderr


def test_the_command_names_its_extra_without_it(environments: Environments) -> None:
    refused = environments("asyncjob-sdk").run("-m", "asyncjob.cli", "list")
    assert (refused.returncode, refused.stdout) == (7, "")
    assert refused.stderr == (
        "error: click is not installed, which comes with the extra cli: "
        "pip install 'asyncjob-sdk[cli]' (asyncjob explain extra-missing)\n"
    )


def test_the_command_works_with_its_extra_alone(environments: Environments, tmp_path: Path) -> None:
    clean = environments("asyncjob-sdk[cli]")
    assert clean.run("-m", "asyncjob.cli", "explain", "extra-missing").returncode == 0
    asked = clean.run("-m", "asyncjob.cli", "list", f"--kubeconfig={tmp_path / 'none'}")
    assert asked.returncode == 7
    assert "asyncjob explain no-cluster" in asked.stderr


@pytest.mark.parametrize(
    ("distribution", "module"),
    [
        ("asyncjob-worker", "asyncjob_worker.cli"),
        ("asyncjob-operator", "asyncjob_operator.cli"),
        ("asyncjob-operator", "asyncjob_gateway.cli"),
        ("asyncjob-worker", "asyncjob.cli"),
        ("asyncjob-operator", "asyncjob.cli"),
        ("asyncjob-worker[tracing]", "asyncjob.tracing.export"),
        ("asyncjob-operator[tracing]", "asyncjob.tracing.export"),
    ],
)
def test_worker_and_operator_ask_for_what_they_use(
    environments: Environments, distribution: str, module: str
) -> None:
    script = f"import {module} as it; getattr(it, 'main', print)()"
    done = environments(distribution).run("-c", script, "--help")
    assert done.returncode == 0, done.stderr
