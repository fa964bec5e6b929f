"""One child, as the worker sees it: started, spoken to, ended."""

import asyncio
from collections import deque

import structlog

from asyncjob.app.error_report import HandlerCrashedError
from asyncjob.json_types import JsonObject, text
from asyncjob_worker.errors import WorkerError
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.death import describe_exit
from asyncjob_worker.isolation.frames import FrameDecoder, FrameError, encode
from asyncjob_worker.isolation.memory import MIB
from asyncjob_worker.isolation.messages import MemoryUsage, MessageType, ProcessConfig
from asyncjob_worker.isolation.spawn import ProcessGroup, spawn

log = structlog.get_logger()

_READ_BYTES = 64 * 1024
_SOCKET_LINGER_SECONDS = 1.0
"""How long the socket of a dead process is read, and a process without a socket left alive."""


class ProcessStartError(WorkerError):
    """The handler's process cannot start."""


class HandlerProcess:
    """A child that has loaded its app. Used by one job at a time."""

    def __init__(
        self, process: ProcessGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()
        self._received: deque[JsonObject] = deque()
        self.memory_usage = MemoryUsage()
        self.jobs_run = 0
        process.exited.add_done_callback(self._close_socket_soon)

    @classmethod
    async def start(cls, config: ProcessConfig) -> "HandlerProcess":
        """Start a process and wait until it is ready; raises ProcessStartError."""
        try:
            process, connection = spawn()
        except OSError as error:
            raise ProcessStartError(f"the handler's process cannot start: {error}") from error
        try:
            child = cls(process, *await asyncio.open_unix_connection(sock=connection))
        except BaseException:
            process.kill()
            raise
        try:
            await child._handshake(config)
        except BaseException:
            child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    @property
    def exited(self) -> asyncio.Future[int]:
        """Its exit code, -N for a signal, once it has ended."""
        return self._process.exited

    def fits(self, memory_mib: int | None) -> bool:
        """Return whether earlier jobs have left enough of the memory limit to another."""
        if memory_mib is None:
            return True
        at_first = self.memory_usage.at_first
        grown, room = self.memory_usage.memory - at_first, memory_mib * MIB - at_first
        return grown * 2 <= room

    def send(self, message: JsonObject) -> None:
        """Send a message; raises FrameTooLargeError. To a dead child it does nothing."""
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        """Send a frame. To a dead child it does nothing."""
        if not self._writer.is_closing():
            self._writer.write(frame)

    async def receive(self) -> JsonObject:
        """Return the next message; raises HandlerCrashedError once the process is dead."""
        while not self._received:
            piece = await self._read()
            if not piece:
                raise HandlerCrashedError(describe_exit(await self._exit_code()))
            try:
                self._received.extend(self._decoder.feed(piece))
            except FrameError as error:
                self.kill()
                raise HandlerCrashedError(
                    f"the handler's process spoke garbage: {error}"
                ) from error
        return self._received.popleft()

    def kill(self) -> None:
        """Kill it at once, and whatever it has started; a dead one is let go of."""
        self.kill_process()
        self._writer.transport.abort()

    def kill_process(self) -> None:
        """Kill the process and whatever it has started, from any thread; its end is seen later."""
        self._process.kill()

    async def end(self, grace_seconds: float) -> None:
        """Ask it to end, and kill it if it has not after so many seconds."""
        self.send(messages.END_MESSAGE)
        await asyncio.wait({self.exited}, timeout=grace_seconds)
        if not self.exited.done():
            log.warning("a handler's process does not end and is killed", pid=self.pid)
        self.kill()
        await asyncio.wait({self.exited}, timeout=grace_seconds)

    async def _handshake(self, config: ProcessConfig) -> None:
        self.send(messages.begin_message(config))
        try:
            answer = await self.receive()
        except HandlerCrashedError as error:
            raise ProcessStartError(f"{error}, before it was ready for the handler") from error
        if messages.message_type(answer) != MessageType.READY:
            raise ProcessStartError(f"the handler's process cannot start: {text(answer, 'why')}")
        self.memory_usage = messages.read_memory_usage(answer)

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_READ_BYTES)
        except OSError:
            return b""

    async def _exit_code(self) -> int:
        """Return the exit code of a process that has closed its socket; kill it if it lives."""
        await asyncio.wait({self.exited}, timeout=_SOCKET_LINGER_SECONDS)
        if not self.exited.done():
            self.kill()
        return await asyncio.shield(self.exited)

    def _close_socket_soon(self, _: asyncio.Future[int]) -> None:
        """Close the socket soon, even if a process that has left the group holds the other end."""
        loop = asyncio.get_running_loop()
        loop.call_later(_SOCKET_LINGER_SECONDS, self._writer.transport.abort)
