"""What callers ask of a gateway, which asks the API server whether they may."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx

from support.rights.happening import BrokenError
from support.rights.preparation import succeeded
from support.rights.principals import Principal
from support.rights.probes.probe import Probe, ProbeSetup


def asks(
    does: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    prepare: Callable[[Principal, str], Any] = lambda *_: None,
) -> Probe:
    """Return a probe that sends one request; `{name}` in the path is what `prepare` has made."""

    async def run(principal: Principal, setup: ProbeSetup, name: str) -> None:
        prepare(principal, name)
        with setup.http(principal) as client:
            _expect(client.request(method, path.format(name=name), json=body))

    return Probe(does, run, direct=False)


async def follows(principal: Principal, setup: ProbeSetup, _: str) -> None:
    """Open the stream of events, and close it."""
    with setup.http(principal) as client, client.stream("GET", "/api/v1/events") as answer:
        if answer.is_error:
            answer.read()
        _expect(answer)


async def reads_a_result(principal: Principal, setup: ProbeSetup, name: str) -> None:
    """Read the result of a job that a worker has done."""
    succeeded(principal, name, setup.worker)
    with setup.http(principal) as client:
        answer = client.get(f"/api/v1/jobs/{name}/result")
        _expect(answer)
        assert answer.json()["result"] == {"sum": 3}


def _expect(answer: httpx.Response) -> None:
    if answer.status_code == HTTPStatus.FORBIDDEN:
        raise BrokenError(answer.json()["detail"])
    assert not answer.is_error, answer.text
