"""What callers ask of a gateway, which asks the API server whether they may."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx

from support.rights.happening import BrokenError
from support.rights.probes.probe import Ground, Probe
from support.rights.scenes import succeeded
from support.rights.seats import Seat


def asks(
    does: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    scene: Callable[[Seat, str], Any] = lambda *_: None,
) -> Probe:
    """Return a probe that sends one request; `{name}` in the path is what the scene has made."""

    async def run(seat: Seat, ground: Ground, name: str) -> None:
        scene(seat, name)
        with ground.http(seat) as client:
            _expect(client.request(method, path.format(name=name), json=body))

    return Probe(does, run, direct=False)


async def follows(seat: Seat, ground: Ground, _: str) -> None:
    """Open the stream of events, and close it."""
    with ground.http(seat) as client, client.stream("GET", "/api/v1/events") as answer:
        if answer.is_error:
            answer.read()
        _expect(answer)


async def reads_a_result(seat: Seat, ground: Ground, name: str) -> None:
    """Read the result of a job that a worker has done."""
    succeeded(seat, name, ground.worker)
    with ground.http(seat) as client:
        answer = client.get(f"/api/v1/jobs/{name}/result")
        _expect(answer)
        assert answer.json()["result"] == {"sum": 3}


def _expect(answer: httpx.Response) -> None:
    if answer.status_code == HTTPStatus.FORBIDDEN:
        raise BrokenError(answer.json()["detail"])
    assert not answer.is_error, answer.text
