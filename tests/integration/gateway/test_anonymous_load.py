"""Whoever has no right here: what they send, and how slowly, keeps nobody else waiting."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest

from integration.gateway.conftest import Site
from support.driven.jobs import until
from support.processes.gateway import ROOT, GatewayProcess, caller
from support.tenants.strangers import BAD_TOKENS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

SECONDS = 15.0
BAR_SECONDS = 1.0
SLOW_HEAD = (
    b"POST /api/v1/jobs/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)


@dataclass(frozen=True)
class Tokens:
    stranger: str
    submitter: str


@pytest.fixture(scope="module")
def tokens(site: Site) -> Tokens:
    return Tokens(
        caller(site.space, "no-rights"),
        caller(site.space, "rightful", "asyncjob-job-submitter"),
    )


@pytest.fixture(scope="module")
def gateway(site: Site) -> Iterator[GatewayProcess]:
    limits = ("--header-timeout=2", "--body-timeout=3", "--auth-cache=1", "--max-connections=900")
    with site.gateway(*limits) as running:
        yield running.until_ready()


def connect(gateway: GatewayProcess, sent: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", gateway.port), timeout=20)
    made.sendall(sent)
    return made


def received(connection: socket.socket) -> bytes:
    """Return all that comes until the connection is closed."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


def measured(act: Callable[[], httpx.Response], stop: threading.Event) -> list[float]:
    """Do it again and again; return how many seconds each took, all of them well answered."""
    taken = []
    while not stop.is_set():
        begun = time.monotonic()
        answer = act()
        taken.append(time.monotonic() - begun)
        assert answer.status_code in {200, 202}, answer.text
        time.sleep(0.02)  # a caller, not a load
    return taken


@pytest.mark.alone
def test_rightful_callers_are_answered_in_time_whatever_strangers_do(
    gateway: GatewayProcess, tokens: Tokens
) -> None:
    stop, taken = threading.Event(), dict[str, list[float]]()

    def call(name: str, token: str | None, method: str, path: str, body: object = None) -> None:
        with gateway.client(token) as client:
            client.request(method, path, json=body)
            taken[name] = measured(lambda: client.request(method, path, json=body), stop)

    callers = [
        threading.Thread(target=call, args=args)
        for args in (
            ("GET", tokens.submitter, "GET", "/api/v1/jobs?limit=5"),
            ("POST", tokens.submitter, "POST", "/api/v1/jobs", {"type": "seldom"}),
            ("probe", None, "GET", "/healthz"),
        )
    ]
    for one in callers:
        one.start()
    command = [sys.executable, "-m", "support.tenants.strangers", str(gateway.port), str(SECONDS)]
    done = subprocess.run(
        [*command, tokens.stranger],
        cwd=ROOT / "tests",
        capture_output=True,
        check=True,
        timeout=SECONDS + 60,
    )
    stop.set()
    for one in callers:
        one.join()
    did = json.loads(done.stdout)
    assert did["half head"] >= 128
    assert did["half body"] >= 128
    assert did["bad token"] >= 0.9 * BAD_TOKENS * SECONDS, did
    assert set(did) & {"big body 403"}, did
    assert set(taken) == {"GET", "POST", "probe"}
    for name, seconds in taken.items():
        ordered = sorted(seconds)
        p99 = ordered[int(0.99 * len(ordered))]
        assert p99 < BAR_SECONDS, (name, p99, len(ordered), did)
    assert "[error" not in gateway.log.read_text()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_head_is_closed(gateway: GatewayProcess, sent: bytes) -> None:
    begun = time.monotonic()
    with connect(gateway, sent) as silent:
        assert received(silent) == b""
    assert time.monotonic() - begun >= 1.9


def test_bytes_now_and_then_do_not_make_a_head_last_longer(gateway: GatewayProcess) -> None:
    with connect(gateway, b"GET /healthz HTTP/1.1\r\n") as dribbling:

        def closed() -> bool:
            try:
                dribbling.sendall(b"X-More: 1\r\n")
            except OSError:
                return True
            return False

        until(closed, 8, "the end of the connection")


def test_a_body_that_does_not_come_is_given_up(gateway: GatewayProcess, tokens: Tokens) -> None:
    token = f"Authorization: Bearer {tokens.submitter}\r\n".encode()
    slow_body = b"Connection: close\r\nContent-Length: 9\r\n\r\n{"
    with connect(gateway, SLOW_HEAD + token + slow_body) as slow:
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"/problems/slow-body" in answer


def test_rights_are_asked_for_before_the_body(gateway: GatewayProcess, tokens: Tokens) -> None:
    token = f"Authorization: Bearer {tokens.stranger}\r\n".encode()
    with connect(gateway, SLOW_HEAD + token + b"Content-Length: 4000000\r\n\r\n") as slow:
        answer = slow.recv(65536)
    assert answer.startswith(b"HTTP/1.1 403")


def test_beyond_the_most_connections_those_without_a_request_make_room(
    gateway: GatewayProcess,
) -> None:
    idle = [connect(gateway, b"GET /") for _ in range(950)]
    try:
        with gateway.client() as client:
            assert client.get("/healthz").status_code == 200
        idle[0].settimeout(1)
        assert idle[0].recv(1) == b""
    except ConnectionResetError:
        pass  # it was hung up on, which is as well
    finally:
        for one in idle:
            one.close()


ODD = [
    b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    b"GET /dashboard/sign-in HTTP/1.1\r\nHost: [\r\nAccept: text/html\r\n\r\n",
    b"GET /dashboard/sign-in?next=//[ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /dashboard/jobs HTTP/1.1\r\nHost: x:y\r\nAccept: text/html\r\n\r\n",
    b"POST /dashboard/sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://[\r\nContent-Length: 0\r\n\r\n",
    b"POST /dashboard/sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 19 + b"\r\n\r\n",
    b"GET /api/v1/jobs HTTP/1.1\r\nHost: [::1\r\nAuthorization: Bearer \xff\r\n\r\n",
    b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\nCookie: \xff=\xfe; asyncjob-token=\xe9\r\n\r\n",
    b"GET /dashboard/static/x/%5b HTTP/1.1\r\nHost: ::::\r\n\r\n",
]


@pytest.mark.parametrize("sent", ODD)
def test_nothing_that_a_stranger_sends_is_a_fault_of_the_gateway(
    gateway: GatewayProcess, sent: bytes
) -> None:
    with connect(gateway, sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)) as odd:
        answer = received(odd)
    assert answer.startswith(b"HTTP/1.1 ")
    assert int(answer[9:12]) < 500, answer
    assert "[error" not in gateway.log.read_text()
