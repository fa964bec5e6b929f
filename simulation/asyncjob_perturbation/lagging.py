"""An API server that lags: a second one on the same etcd, to which its watches tell all too late.

It finds etcd behind a proxy, which hands everything on at once but for the watches of what the
parts watch: their events arrive some seconds late, in their order. So it reads and writes what is,
and shows what was. Accounts, roles and policies it knows as they are: a part is not to be refused
at a namespace that was made a moment ago.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import grpc.aio

from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES, collection_path
from asyncjob_dev.api import Api
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.ports import LOOPBACK
from asyncjob_dev.process import wait_until

_LATE_PATHS: Final = (
    *(collection_path(None, resource) for resource in (JOBS, QUEUES, CRON_JOBS)),
    "/api/v1/pods",
    "/apis/coordination.k8s.io/v1/leases",
)
LATE: Final = tuple(f"/registry/{name}/".encode() for name in (GROUP, "pods", "leases"))
"""Where in etcd that is of which the watches lag."""

_FILLED_SECONDS: Final = 60.0
_WATCH: Final = "/etcdserverpb.Watch/Watch"
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # An API server asks each 30 s whether etcd lives, which C-core takes for an attack.
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ("grpc.keepalive_permit_without_calls", 1),
)
_OWN_METADATA: Final = ("user-agent", "te", "content-type")

Messages = AsyncIterator[bytes]


class EtcdProxy(grpc.GenericRpcHandler):
    """Hands on whatever is asked of etcd, and what watches tell `lag` seconds late."""

    def __init__(self, etcd: str) -> None:
        self.lag = 0.0
        self._etcd = grpc.aio.insecure_channel(etcd, options=_OPTIONS)

    def service(self, details: Any) -> Any:
        """Return how a method is served: all as streams, of which a single message is a case."""

        async def serve(requests: Messages, context: Any) -> Messages:
            async for message in self._answers(details, requests, context):
                yield message

        return grpc.stream_stream_rpc_method_handler(serve)

    async def close(self) -> None:
        """Close the connection to etcd."""
        await self._etcd.close()

    async def _answers(self, details: Any, requests: Messages, context: Any) -> Messages:
        is_late = False

        async def handed_on() -> Messages:
            nonlocal is_late
            async for request in requests:
                is_late = is_late or (details.method == _WATCH and _is_late(request))
                yield request

        metadata = [one for one in context.invocation_metadata() if one[0] not in _OWN_METADATA]
        method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self._etcd.stream_stream(
            details.method
        )
        call = method(handed_on(), metadata=metadata)
        try:
            async for answer in delayed(call, lambda: self.lag if is_late else 0.0):
                yield answer
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        finally:
            call.cancel()


async def delayed(messages: AsyncIterable[bytes], lag: Callable[[], float]) -> Messages:
    """Yield each message so many seconds after it has come, in their order."""
    clock = asyncio.get_running_loop().time
    coming: asyncio.Queue[tuple[float, bytes | BaseException | None]] = asyncio.Queue()

    async def read() -> None:
        end: BaseException | None = None
        try:
            async for message in messages:
                coming.put_nowait((clock() + lag(), message))
        except grpc.aio.AioRpcError as error:
            end = error
        coming.put_nowait((clock(), end))

    reading = asyncio.create_task(read())
    try:
        while True:
            due, message = await coming.get()
            if isinstance(message, bytes):
                await asyncio.sleep(due - clock())
                yield message
            elif message is None:
                return
            else:
                raise message
    finally:
        reading.cancel()


def _is_late(request: bytes) -> bool:
    return any(prefix in request for prefix in LATE)


@asynccontextmanager
async def lagging_apiserver(plane: ControlPlane, lag: float) -> AsyncIterator[str]:
    """Yield the URL of an API server beside that of a control plane, so many seconds behind it."""
    proxy = EtcdProxy(plane.etcd_address)
    server = grpc.aio.server(options=_OPTIONS)
    server.add_generic_rpc_handlers((proxy,))
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    url, process = plane.another_apiserver(port)
    api = Api(url, ca_file=plane.ca_file, token=plane.admin_token)
    try:
        await asyncio.to_thread(process.start)
        await asyncio.to_thread(_until_caches_are_filled, api)
        proxy.lag = lag
        yield url
    finally:
        await asyncio.to_thread(process.kill)
        await server.stop(grace=None)
        await proxy.close()


def _until_caches_are_filled(api: Api) -> None:
    """Wait until it no longer answers with 429 what it has to answer from watches that then lag."""
    for path in _LATE_PATHS:
        cached = f"{path}?resourceVersion=0&limit=1"
        wait_until(partial(api.answers, cached), cached, within=_FILLED_SECONDS)
