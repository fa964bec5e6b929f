"""A watch that is left: its socket comes back at once, whatever the server does."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from asyncjob.kube import KubeSession, load_access
from asyncjob.kube.watch import open_watch, read_events
from support.loopback.certificates import self_signed

ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def deaf(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Run a server with TLS that answers and hears nothing afterwards, no goodbye either."""
    writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # it can

    certificate, key = self_signed(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
        host, port = server.sockets[0].getsockname()
        yield {"server": f"https://{host}:{port}", "certificate-authority": str(certificate)}
        for writer in writers:
            writer.transport.abort()


def point_at(cluster: dict[str, str], kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"] = cluster
    kubeconfig.write_text(yaml.safe_dump(config))


async def test_a_watch_that_is_left_gives_its_socket_back_without_the_servers_goodbye(
    kubeconfig: Path, deaf: dict[str, str]
) -> None:
    point_at(deaf, kubeconfig)
    async with KubeSession(await load_access(str(kubeconfig)), field_manager="t") as session:
        response = await open_watch(session, "/x")
        assert response.connection
        assert response.connection.transport
        socket = response.connection.transport.get_extra_info("socket")
        told = read_events(response)
        waiting = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        await told.aclose()
    assert socket.fileno() == -1
