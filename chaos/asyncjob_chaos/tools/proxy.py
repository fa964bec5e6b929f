"""A network between one process and the API server: a loopback proxy that can be told to fail.

It forwards bytes and knows nothing of them: TLS goes through it as it is.
"""

import asyncio
import random
import threading
from collections.abc import Coroutine
from contextlib import suppress
from enum import Enum
from typing import Any, Self
from urllib.parse import urlsplit

CHUNK = 1 << 16
HANDSHAKE_CHUNKS = 4
"""Answers at the beginning of a connection that belong to TLS: without them no request is sent."""


class Mode(Enum):
    """What the network does."""

    OPEN = "open"
    SILENT = "silent"
    """Nothing comes through, and nobody is told."""

    RESET = "reset"
    """Connections are reset, and new ones as well."""

    DELAY = "delay"
    """Everything takes longer, in both directions."""

    LOSE_ANSWERS = "lose answers"
    """Requests get through; of the answers some are lost, with their connection."""


class NetworkProxy:
    """A port on loopback that leads to the API server, served by a thread; a context manager."""

    def __init__(self, target: str, seed: int = 0) -> None:
        parts = urlsplit(target)
        assert parts.hostname
        assert parts.port
        self._target = (parts.hostname, parts.port)
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._mode = Mode.OPEN
        self._open = asyncio.Event()
        self._server: asyncio.Server | None = None
        self.seconds = 0.0
        """How long each piece is delayed."""

        self.share = 0.0
        """How many of the answers are lost."""

        self.hits = 0
        """How often it has cut, delayed or lost something."""

    @property
    def url(self) -> str:
        """Where it is."""
        assert self._server is not None
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set(self, mode: Mode, *, seconds: float = 0.0, share: float = 0.0) -> None:
        """Do this from now on, with open connections as well."""
        self.seconds, self.share = seconds, share
        self._run(self._switch(mode))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _switch(self, mode: Mode) -> None:
        was, self._mode = self._mode, mode
        if mode is Mode.SILENT:
            self._open.clear()
            self.hits += len(self._connections)
        else:
            self._open.set()
        if mode is Mode.RESET or was is Mode.SILENT:
            # After a real cut the first packet is answered with a reset: nobody knows it any more.
            self.hits += len(self._connections)
            for task in list(self._connections):
                task.cancel()

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if self._mode is Mode.RESET:
                self.hits += 1
                return
            await self._open.wait()
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, upstream_writer = await asyncio.open_connection(*self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward(reader, upstream_writer))
                both.create_task(self._answer(upstream, writer))
        except* (OSError, EOFError):
            pass
        finally:
            upstream_writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            await self._hold()
            writer.write(chunk)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = 0
        while chunk := await reader.read(CHUNK):
            seen += 1
            await self._hold()
            lossy = self._mode is Mode.LOSE_ANSWERS and seen > HANDSHAKE_CHUNKS
            if lossy and self._chance.random() < self.share:
                self.hits += 1
                break
            writer.write(chunk)
            await writer.drain()
        raise EOFError

    async def _hold(self) -> None:
        await self._open.wait()
        if self._mode is Mode.DELAY:
            self.hits += 1
            await asyncio.sleep(self.seconds)
