"""What a gateway that is open lets in, and where it may listen."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.types import Receive, Scope, Send

from asyncjob.errors import ConfigError
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.loopback import LoopbackOnlyMiddleware
from asyncjob_gateway.cli import main
from asyncjob_gateway.errors import RefusedError, UnsafeSettingsError
from asyncjob_gateway.limits.load import (
    LARGE_BODY_BYTES,
    MAX_LARGE_BYTES,
    LoadLimitMiddleware,
)
from asyncjob_gateway.settings import GatewaySettings
from support.loopback.certificates import self_signed


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "localhost.example", "", "gateway"])
def test_an_open_gateway_may_not_listen_elsewhere(host: str) -> None:
    GatewaySettings(host=host).check()
    with pytest.raises(UnsafeSettingsError, match="may only listen on loopback"):
        GatewaySettings(host=host, open=True).check()


def test_tls_takes_both_halves(tmp_path: Path) -> None:
    cert, key = map(str, self_signed(tmp_path))
    GatewaySettings(tls_cert=cert, tls_key=key).check()
    with pytest.raises(ConfigError, match="go together"):
        GatewaySettings(tls_cert=cert).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_it_may_on_loopback(host: str) -> None:
    GatewaySettings(host=host, open=True).check()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    scope["reached"] = True


async def reached(**headers: str) -> bool:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {"type": "http", "headers": raw}

    async def nothing() -> dict[str, str]:
        return {}

    async def drop(_message: object) -> None: ...

    with suppress(RefusedError):
        await LoopbackOnlyMiddleware(app)(scope, nothing, drop)
    return "reached" in scope


@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ({"host": "127.0.0.1:8080"}, True),
        ({"host": "localhost"}, True),
        ({"host": "[::1]:8080"}, True),
        ({"host": "localhost:8080", "origin": "http://localhost:8080"}, True),
        ({"host": "localhost", "sec_fetch_site": "same-origin"}, True),
        ({}, False),
        ({"host": "example.org"}, False),
        ({"host": "localhost.example.org"}, False),
        ({"host": "localhost@example.org"}, False),
        ({"host": "[::1"}, False),
        ({"host": "localhost", "origin": "http://localhost:3000"}, False),
        ({"host": "localhost", "origin": "null"}, False),
        ({"host": "localhost", "sec_fetch_site": "cross-site"}, False),
        ({"host": "localhost", "sec_fetch_site": "same-site"}, False),
    ],
)
async def test_only_requests_of_this_machine_are_answered(
    headers: dict[str, str], answered: bool
) -> None:
    assert await reached(**headers) is answered


@pytest.mark.parametrize("name", ["Authorization", "cookie", "Proxy-Authorization", "a b", ""])
def test_credentials_are_never_handed_on(name: str) -> None:
    done = CliRunner().invoke(main, ["run", "--forward-header", name])
    assert done.exit_code == 2
    assert "--forward-header" in done.output


async def test_there_is_room_for_so_many_requests_and_probes_always_pass() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/jobs":
            scope["state"]["request_slot"].acquire()
        begun.set()
        await go_on.wait()

    limited = LoadLimitMiddleware(slow, max_requests=1, timeout=60)
    scope: Scope = {"type": "http", "path": "/jobs"}
    first = asyncio.create_task(limited(scope, None, None))  # type: ignore[arg-type]  # not used
    await begun.wait()
    with pytest.raises(RefusedError) as refused:
        await limited(scope, None, None)  # type: ignore[arg-type]  # not used
    assert refused.value.kind is problem_types.BUSY
    others = [
        asyncio.create_task(limited({**scope, "path": path}, None, None))  # type: ignore[arg-type]  # not used
        for path in ("/readyz", "/whoever-is-not-known-yet")
    ]
    go_on.set()
    await asyncio.gather(first, *others)


async def test_large_bodies_together_have_so_much_room_and_small_ones_always_pass() -> None:
    go_on = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["request_slot"].acquire(int(scope["path"].strip("/")))
        await go_on.wait()

    limited = LoadLimitMiddleware(slow, max_requests=100, timeout=60)

    def sent(size: int) -> "asyncio.Task[None]":
        scope: Scope = {"type": "http", "path": f"/{size}"}
        return asyncio.create_task(limited(scope, None, None))  # type: ignore[arg-type]  # not used

    enough = [sent(2 * MAX_LARGE_BYTES)]  # one is worked on however large it is
    await asyncio.sleep(0)
    refused = sent(LARGE_BODY_BYTES + 1)
    small = sent(LARGE_BODY_BYTES)
    with pytest.raises(RefusedError) as told:
        await refused
    assert told.value.kind is problem_types.BUSY
    go_on.set()
    await asyncio.gather(*enough, small)
    go_on.clear()
    many = [sent(MAX_LARGE_BYTES // 4) for _ in range(5)]
    with pytest.raises(RefusedError):
        await many.pop()
    go_on.set()
    await asyncio.gather(*many)


async def test_a_request_that_takes_too_long_is_given_up() -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    limited = LoadLimitMiddleware(endless, max_requests=1, timeout=0.01)
    for _ in range(2):  # the second finds room again
        with pytest.raises(RefusedError) as refused:
            await limited({"type": "http", "path": "/"}, None, None)  # type: ignore[arg-type]  # not used
        assert refused.value.kind is problem_types.TIMED_OUT
