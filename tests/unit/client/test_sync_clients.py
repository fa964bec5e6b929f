"""Synchronous clients: where callbacks run, threads, forks, and the interpreter's end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from asyncjob.client import JobsClient, KubernetesJobsClient
from asyncjob.client.portal import Portal, run_in_place
from asyncjob.rest.job_reading import job_of
from asyncjob.rest.listing import Selection
from asyncjob.rest.submission import Submission
from support.objects.builders import stored

SUBMITTED = {"id": "j", "created": True, "phase": "Queued"}


def whole(**status: Any) -> Any:
    return job_of(stored("j", status)).model_dump(mode="json", by_alias=True)


class Answers(BaseHTTPRequestHandler):
    """A gateway and API server whose job has succeeded; a stream of changes stays silent."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        server: Any = self.server
        if self.path.startswith("/api/v1/events"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b": hello\n\n")
            self.wfile.flush()
            server.watched.set()
            server.stop.wait(30)
            return
        on_kubernetes = self.path.startswith("/apis/")
        succeeded = {"phase": "Succeeded"}
        self._answer(stored("j", succeeded) if on_kubernetes else whole(**succeeded))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        items = [{"job": SUBMITTED} for _ in body["jobs"]]
        self._answer({"items": items, "accepted": len(items), "refused": 0})

    def _answer(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Gateway(ThreadingHTTPServer):
    """Where it listens; `watched` once somebody has opened a stream."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.watched, self.stop = threading.Event(), threading.Event()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.stop.set()
        server.shutdown()
        thread.join(10)


@pytest.fixture
def url(gateway: Gateway) -> str:
    return f"http://localhost:{gateway.server_port}"


def of_transport(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> JobsClient:
    return JobsClient("http://jobs.test", transport=httpx.MockTransport(answer), **options)


def test_the_callback_of_a_wait_may_use_the_client(url: str) -> None:
    with JobsClient(url) as jobs:
        seen = list[tuple[threading.Thread, Any]]()
        jobs.wait("j", on_change=lambda _: seen.append((threading.current_thread(), jobs.get("j"))))
    [(thread, job)] = seen
    assert (thread, job.phase) == (threading.current_thread(), "Succeeded")


def test_the_submissions_of_many_may_be_made_with_the_client(url: str) -> None:
    with JobsClient(url) as jobs:
        many = (Submission(type="t", payload=jobs.get("j").phase) for _ in range(3))
        assert [item.job and item.job.id for item in jobs.submit_many(many)] == ["j"] * 3


def test_many_are_asked_for_as_far_as_the_next_batch_takes_them(url: str) -> None:
    begun = list[int]()

    def many() -> Iterator[Submission]:
        for number in range(250):
            begun.append(number)
            yield Submission(type="t")

    with JobsClient(url) as jobs:
        results = jobs.submit_many(many())
        next(results)
        assert len(begun) == 100
        assert len(list(results)) == 249


def test_a_token_that_takes_its_time_holds_up_no_other_thread(url: str) -> None:
    asked, go = threading.Event(), threading.Event()

    def token() -> str:
        if not asked.is_set():
            asked.set()
            assert go.wait(10), "nothing else ran meanwhile"
        return "secret"

    with JobsClient(url, token=token) as jobs:
        slow = threading.Thread(target=jobs.get, args=("j",), daemon=True)
        slow.start()
        assert asked.wait(10)
        assert jobs.get("j").id == "j"
        go.set()
        slow.join(10)
        assert not slow.is_alive()


def test_a_transport_of_the_users_may_block() -> None:
    asked, go = threading.Event(), threading.Event()

    def answer(_: httpx.Request) -> httpx.Response:
        if not asked.is_set():
            asked.set()
            assert go.wait(10), "nothing else ran meanwhile"
        return httpx.Response(200, stream=Pieces(json.dumps(whole()).encode()))

    with of_transport(answer) as jobs:
        slow = threading.Thread(target=jobs.get, args=("j",), daemon=True)
        slow.start()
        assert asked.wait(10)
        assert jobs.get("j").id == "j"
        go.set()
        slow.join(10)
        assert not slow.is_alive()


class Pieces(httpx.SyncByteStream):
    """An answer for plain code alone, in pieces."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        half = len(self._content) // 2
        yield self._content[:half]
        yield self._content[half:]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have SIGINT interrupt, also where whoever started the tests had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_iterator_that_is_interrupted_ends_its_request_and_the_client_goes_on(
    gateway: Gateway, url: str
) -> None:
    with JobsClient(url) as jobs:
        watching = jobs.watch()

        def interrupt() -> None:
            assert gateway.watched.wait(10)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            next(watching)
        assert next(watching, None) is None
        assert jobs.get("j").id == "j"


def test_a_client_that_nobody_has_any_more_ends_its_thread(url: str, kubeconfig: Path) -> None:
    before = set(threading.enumerate())
    jobs = KubernetesJobsClient.connect(str(kubeconfig))
    jobs.get("j")
    begun = set(threading.enumerate()) - before
    [thread] = [one for one in begun if one.name == "asyncjob-client"]
    del jobs
    thread.join(10)
    assert not thread.is_alive()


def test_a_client_of_a_gateway_has_no_thread() -> None:
    begun = list[threading.Thread]()

    def answer(_: httpx.Request) -> httpx.Response:
        begun.append(threading.current_thread())
        return httpx.Response(200, json=whole())

    with of_transport(answer) as jobs:
        jobs.get("j")
    assert begun == [threading.current_thread()]


def test_a_client_that_is_closed_is_not_used(url: str, kubeconfig: Path) -> None:
    for jobs in (JobsClient(url), KubernetesJobsClient.connect(str(kubeconfig))):
        jobs.close()
        with pytest.raises(RuntimeError, match="closed"):
            jobs.get("j")


def get_held_job(jobs: JobsClient) -> None:
    jobs.get("held")


def redrive_held_jobs(jobs: JobsClient) -> None:
    jobs.redrive_many(Selection(), dry_run=True)


def watch_held_events(jobs: JobsClient) -> None:
    list(jobs.watch())


@pytest.mark.parametrize("ask", [get_held_job, redrive_held_jobs, watch_held_events])
def test_who_waits_with_a_client_that_is_closed_is_told_so_when_the_answer_comes(
    ask: Callable[[JobsClient], None],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as threads:
        jobs = JobsClient(f"http://127.0.0.1:{server.getsockname()[1]}")
        waiting = threads.submit(ask, jobs)
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            jobs.close()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            with pytest.raises(RuntimeError, match="closed"):
                waiting.result(10)


def test_what_waits_for_an_event_loop_is_not_run_in_place() -> None:
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run_in_place(asyncio.sleep(0))


def test_a_portal_does_not_wait_for_itself() -> None:
    portal = Portal()

    async def inside() -> None:
        nothing = nested()
        with pytest.raises(RuntimeError, match="cannot wait for itself"):
            portal.run(nothing)

    async def nested() -> None: ...

    portal.run(inside())
    portal.close()


PROGRAM_SECONDS = 120.0
"""A program that hangs takes all of it; others as long as the machine needs for their imports."""

PROGRAM = pytest.mark.timeout(PROGRAM_SECONDS + 30)
WAYS = pytest.mark.parametrize("made", ["JobsClient()", "KubernetesJobsClient.connect()"])


@pytest.fixture
def kubeconfig(url: str, tmp_path: Path) -> Path:
    """Name the gateway as a cluster, too."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                "clusters": [{"name": "it", "cluster": {"server": url}}],
                "users": [{"name": "me", "user": {}}],
            }
        )
    )
    return path


def run_program(text: str, url: str, kubeconfig: Path | None = None) -> list[str]:
    """Run a program that has clients, and return what it says; it ends by itself."""
    also = ", KubernetesJobsClient" if kubeconfig else ""
    imports = f"import atexit, os, threading\nfrom asyncjob.client import JobsClient{also}\n"
    done = subprocess.run(
        [sys.executable, "-c", imports + text],
        env={**os.environ, "ASYNCJOB_SERVER": url, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@PROGRAM
@WAYS
def test_a_client_goes_on_in_a_forked_process_and_in_its_parent(
    made: str, url: str, kubeconfig: Path
) -> None:
    program = (
        f"jobs = {made}\n"
        "print(jobs.get('j').phase, flush=True)\n"
        "child = os.fork()\n"
        "print(jobs.get('j').phase, flush=True)\n"
        "jobs.close()\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert run_program(program, url, kubeconfig) == ["Succeeded"] * 3


@PROGRAM
@WAYS
@pytest.mark.parametrize("used_before", [True, False])
def test_a_job_may_be_read_while_the_interpreter_ends(
    made: str, url: str, kubeconfig: Path, used_before: bool
) -> None:
    program = (
        f"jobs = {made}\n"
        f"if {used_before}: jobs.get('j')\n"
        "atexit.register(lambda: (print(jobs.get('j').phase), jobs.close()))\n"
    )
    assert run_program(program, url, kubeconfig) == ["Succeeded"]


@PROGRAM
def test_a_program_ends_while_a_thread_of_it_waits_with_a_client(url: str) -> None:
    program = (
        "jobs = JobsClient()\n"
        "threading.Thread(target=lambda: next(jobs.watch()), daemon=True).start()\n"
        "print(jobs.get('j').phase)\n"
    )
    assert run_program(program, url) == ["Succeeded"]


@PROGRAM
def test_the_clients_load_nothing_of_each_other(url: str) -> None:
    program = (
        "import sys\n"
        "jobs = JobsClient()\n"
        "print(*sorted({'aiohttp', 'kubernetes', 'opentelemetry'} & set(sys.modules)))\n"
    )
    assert run_program(program, url) == []
