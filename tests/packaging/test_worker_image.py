"""The worker's image: what its containers may and hold, and that jobs really run in them."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.images import Engine
from support.processes.containers import Container, Image, image_of
from support.processes.pod_files import pod_files
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PYTHON = "/opt/asyncjob/bin/python"
LARGEST_SHARE = 150_000_000
"""Bytes that we add to the base: measured 125 MB, of which 75 MB are the Kubernetes client."""

FACTS = """
import importlib.util, json, os, pathlib, shutil, subprocess, sys

SETS = ("Prm", "Eff", "Bnd")
FOLDERS = ("/", "/app", "/opt/asyncjob", "/etc", "/tmp")

def writable(folder):
    try:
        (pathlib.Path(folder) / "probe").touch()
    except OSError:
        return False
    return True

def shell_starts():
    try:
        return subprocess.call(["/bin/sh", "-c", "exit 0"]) == 0
    except OSError:
        return False

status = pathlib.Path("/proc/self/status").read_text().split()
print(json.dumps({
    "user": [os.getuid(), os.getgid(), os.getgroups()],
    "capabilities": [int(status[status.index(f"Cap{kind}:") + 1], 16) for kind in SETS],
    "writable": [folder for folder in FOLDERS if writable(folder)],
    "programs": [name for name in ("pip", "pip3", "gcc", "cc", "make", "uv") if shutil.which(name)],
    "pip": any(map(importlib.util.find_spec, ("pip", "ensurepip", "setuptools"))),
    "shell": shell_starts(),
    "package index": any(map(os.path.exists, ("/etc/pip.conf", "/etc/ssl/private-ca.pem"))),
    "variables": sorted(os.environ),
    "compiled": os.path.exists(sys.argv[1]),
}))
"""

LEAVE_ONE_BEHIND = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
"""

PROCESSES = """
import os, pathlib
print(*sorted(int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()
              and int(path.name) != os.getpid()))
"""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Answer every call with the key that it brought."""

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"key": self.headers["Idempotency-Key"]}).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_container_is_nobody_may_nothing_and_has_nothing_to_build_with(image: Image) -> None:
    assert image.config["User"] == "65532:65532"
    assert image.config["StopSignal"] == "SIGTERM"
    assert image.config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    compiled = next((image.root / "opt/asyncjob").rglob("asyncjob_worker/__pycache__/cli.*.pyc"))
    inside = f"/{compiled.relative_to(image.root)}"
    said = image.run("-c", FACTS, inside, entrypoint=[PYTHON])
    assert said.returncode == 0, said.stdout
    facts = json.loads(said.stdout)
    assert facts.pop("user") == [65532, 65532, []]
    assert facts.pop("capabilities") == [0, 0, 0]
    assert facts.pop("writable") == ["/tmp"]
    assert facts.pop("compiled") is True
    assert not [name for name in facts.pop("variables") if name.startswith(("PIP", "SSL"))]
    assert facts == {"programs": [], "pip": False, "shell": False, "package index": False}


def test_nothing_of_the_build_is_left_in_files_or_history(
    image: Image, engine: Engine, tag: str
) -> None:
    described = engine.run("inspect", "--type=image", tag)
    assert "secret" not in json.dumps(json.loads(described)["OCIv1"]["history"])
    for name in ("build", "etc/pip.conf", "etc/ssl/private-ca.pem", "root/.cache"):
        assert not (image.root / name).exists()
    share = sum(path.lstat().st_size for path in (image.root / "opt/asyncjob").rglob("*"))
    assert share < LARGEST_SHARE


def test_the_command_line_works_without_a_shell(image: Image) -> None:
    said = image.run("--help")
    assert said.returncode == 0, said.stdout
    assert "Run handlers for AsyncJobs" in said.stdout
    refused = image.run()
    assert refused.returncode == 1
    assert "POD_NAME and POD_UID are not set" in refused.stdout


def test_the_built_in_handlers_run_jobs_in_a_container(
    image: Image, ns: WorkerNamespace, service: str
) -> None:
    pod = pod_files(ns, "worker-0")
    env = {**pod.env, "ASYNCJOB_HTTP_ALLOW": service, "ASYNCJOB_EXEC_ALLOW": PYTHON}
    with image.started(env=env, mounts=pod.mounts) as container:
        until_log(container, "worker started")
        ns.create("echo", "echo", {"hello": ["world"]})
        call = {"url": f"http://{service}/x", "method": "POST", "expectedStatus": [201]}
        uid = ns.create("http", "http", call)["metadata"]["uid"]
        ns.create("elsewhere", "http", {"url": "http://169.254.169.254/"})
        assert done(ns, "echo") == {"hello": ["world"]}
        answer = done(ns, "http")
        assert (answer["status"], answer["body"]) == (201, {"key": uid})
        refused = ns.until_phase("elsewhere", "DeadLetter")
        assert refused["error"]["category"] == "Permission"
        assert "ASYNCJOB_HTTP_ALLOW" in refused["error"]["message"]
        ns.create("leaves", "exec", {"argv": [PYTHON, "-c", LEAVE_ONE_BEHIND]})
        done(ns, "leaves")
        ns.create("looks", "exec", {"argv": [PYTHON, "-c", PROCESSES]})
        assert done(ns, "looks")["stdout"]["text"] == "1\n"
        ns.create("sleeps", "sleep", {"seconds": 300})
        ns.until_phase("sleeps", "Running")
        ns.cancel("sleeps")
        ns.until_phase("sleeps", "Cancelled")
        container.signal(image.config["StopSignal"])
        ended = container.wait()
    assert ended.returncode == 0, ended.stdout
    assert "worker stopped" in ended.stdout


def test_a_drain_ends_the_program_and_gives_its_job_back(image: Image, ns: WorkerNamespace) -> None:
    pod = pod_files(ns, "worker-0")
    env = {**pod.env, "ASYNCJOB_EXEC_ALLOW": PYTHON, "ASYNCJOB_WORKER_GRACE": "0"}
    with image.started(env=env, mounts=pod.mounts) as container:
        until_log(container, "worker started")
        ns.create("long", "exec", {"argv": [PYTHON, "-c", "import time; time.sleep(300)"]})
        until(lambda: len(container.processes()) == 2, 20.0, container.log)
        container.signal(image.config["StopSignal"])
        ended = container.wait()
    assert ended.returncode == 0, ended.stdout
    assert "abandoned" not in ended.stdout
    status = ns.until_phase("long", "Queued")
    assert (status["reason"], status.get("releases", 0)) == ("Released", 1)


def test_two_lines_make_an_image_of_ones_own(
    engine: Engine, tag: str, ns: WorkerNamespace, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(OWN_APP)
    (tmp_path / "Dockerfile").write_text(f"FROM {tag}\nCOPY app.py .\n")
    own = "localhost/own-worker:under-test"
    engine.build(["--file", str(tmp_path / "Dockerfile"), "--tag", own], tmp_path)
    pod = pod_files(ns, "worker-0")
    with (
        image_of(engine, own, tmp_path / "containers") as image,
        image.started(env=pod.env, mounts=pod.mounts) as container,
    ):
        until_log(container, "worker started")
        ns.create("greets", "greet", {"name": "you"})
        ns.create("echo", "echo", 1)
        assert done(ns, "greets") == "Hello you"
        assert done(ns, "echo") == 1


OWN_APP = """
from pydantic import BaseModel

from asyncjob import JobContext, WorkerApp
from asyncjob_worker import builtin

app = WorkerApp()
app.include(builtin.app)


class Greeting(BaseModel):
    name: str


@app.handler("greet")
async def greet(job: JobContext, payload: Greeting) -> str:
    return f"Hello {payload.name}"
"""


def done(ns: WorkerNamespace, name: str) -> Any:
    return ns.until_phase(name, "Succeeded")["result"]


def until_log(container: Container, text: str) -> None:
    until(lambda: text in container.log(), 20.0, container.log)
