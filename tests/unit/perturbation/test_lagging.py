"""What an API server that lags is told late, and what not, by a gRPC server in etcd's place."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from asyncjob_perturbation.lagging import EtcdProxy, delayed

WATCH = "/etcdserverpb.Watch/Watch"
RANGE = "/etcdserverpb.KV/Range"
JOBS = b"\n\x2a\n\x20/registry/asyncjob.dev/asyncjobs/"
ROLES = b"\n\x2a\n\x20/registry/clusterroles/"


class Etcd(grpc.GenericRpcHandler):
    """Answers each message with itself, and one that is `bad` with an error."""

    def service(self, details: Any) -> Any:
        async def echo(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for request in requests:
                if request == b"bad":
                    await context.abort(grpc.StatusCode.OUT_OF_RANGE, "compacted")
                yield details.method.encode() + request

        return grpc.stream_stream_rpc_method_handler(echo)


@pytest.fixture
async def channel() -> AsyncIterator[tuple[grpc.aio.Channel, EtcdProxy]]:
    etcd, server = grpc.aio.server(), grpc.aio.server()
    etcd.add_generic_rpc_handlers((Etcd(),))
    proxy = EtcdProxy(f"127.0.0.1:{etcd.add_insecure_port('127.0.0.1:0')}")
    server.add_generic_rpc_handlers((proxy,))
    port = server.add_insecure_port("127.0.0.1:0")
    await asyncio.gather(etcd.start(), server.start())
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as made:
        yield made, proxy
    await asyncio.gather(server.stop(None), etcd.stop(None))
    await proxy.close()


def stream(
    channel: grpc.aio.Channel, method: str, request: bytes
) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
    made: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(method)
    return made(iter([request]))


async def test_only_watches_of_what_parts_watch_are_late(
    channel: tuple[grpc.aio.Channel, EtcdProxy],
) -> None:
    to_etcd, proxy = channel
    proxy.lag = 1e9
    late = stream(to_etcd, WATCH, JOBS)
    reading = asyncio.ensure_future(late.read())
    for method, request in ((RANGE, JOBS), (WATCH, ROLES)):
        answers = stream(to_etcd, method, request)
        assert [one async for one in answers] == [method.encode() + request]
    await asyncio.sleep(0.05)
    assert not reading.done()
    late.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def test_what_etcd_refuses_is_refused_in_its_words(
    channel: tuple[grpc.aio.Channel, EtcdProxy],
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stream(channel[0], RANGE, b"bad").read()
    assert refused.value.code() is grpc.StatusCode.OUT_OF_RANGE
    assert refused.value.details() == "compacted"


async def test_what_is_late_comes_in_its_order_and_to_its_end() -> None:
    async def three() -> AsyncIterator[bytes]:
        for one in (b"1", b"2", b"3"):
            yield one

    lags = iter([0.02, 0.0, 0.01])
    assert [one async for one in delayed(three(), lambda: next(lags))] == [b"1", b"2", b"3"]
