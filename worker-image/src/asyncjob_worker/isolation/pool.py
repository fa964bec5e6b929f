"""The processes for handlers, from the worker's side.

They are started when first needed, reused while warm, and ended in order. A process gets one end of
a socket and nothing else of the worker's: no other file descriptor, an empty standard input, a
session of its own. It is started fresh, never forked from a process with threads, and from the
thread that lives longest: Linux ends a child with the *thread* it came from.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final

import structlog

from asyncjob.app.error_report import HandlerCrashedError
from asyncjob.json_types import JsonObject, text
from asyncjob_worker.errors import WorkerError
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.memory import MIB
from asyncjob_worker.isolation.protocol import (
    FrameDecoder,
    FrameError,
    MemoryUsage,
    MessageType,
    ProcessConfig,
    encode,
)

CHILD_MODULE: Final = "asyncjob_worker.isolation.child"


class ProcessGroup:
    """One child process, the leader of its group; whatever is left of the group ends with it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._reap_lock = threading.Lock()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        name = f"reaper-{process.pid}"
        threading.Thread(target=self._await_exit, name=name, daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it, and whatever it has started."""
        with self._reap_lock:
            if self._process.returncode is None:
                _kill_group(self.pid)

    def _await_exit(self) -> None:
        if hasattr(os, "waitid"):
            # Not reaped yet, so that its group's number cannot be another's when it is killed.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._reap_lock:
                _kill_group(self.pid)
                self._process.wait()
        code = self._process.wait()
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._set_exited, code)
        _reap_orphans(self.pid)

    def _set_exited(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def spawn() -> tuple[ProcessGroup, socket.socket]:
    """Start a child; returns it with the worker's end of the socket. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        descriptor = theirs.fileno()
        try:
            process = subprocess.Popen(
                # -P: the current folder is not yet on the path, as in the worker at its start.
                [sys.executable, "-P", "-m", CHILD_MODULE, str(descriptor), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=(descriptor,),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return ProcessGroup(process), ours


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _reap_orphans(group: int) -> None:
    """Reap what it had started, where that falls to us: as a container's first process."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


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
        self.send(protocol.END_MESSAGE)
        await asyncio.wait({self.exited}, timeout=grace_seconds)
        if not self.exited.done():
            log.warning("a handler's process does not end and is killed", pid=self.pid)
        self.kill()
        await asyncio.wait({self.exited}, timeout=grace_seconds)

    async def _handshake(self, config: ProcessConfig) -> None:
        self.send(protocol.begin_message(config))
        try:
            answer = await self.receive()
        except HandlerCrashedError as error:
            raise ProcessStartError(f"{error}, before it was ready for the handler") from error
        if protocol.message_type(answer) != MessageType.READY:
            raise ProcessStartError(f"the handler's process cannot start: {text(answer, 'why')}")
        self.memory_usage = protocol.read_memory_usage(answer)

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


IDLE_SECONDS = 300.0
"""A child without a job for so long is ended."""

END_SECONDS = 3.0
"""How long a child may take to end when it is asked to."""


class ProcessPool:
    """Up to `max_size` children.

    `jobs_per_process` is how many jobs one may run, 0 for any number.
    """

    def __init__(self, config: ProcessConfig, max_size: int, *, jobs_per_process: int = 0) -> None:
        self._config = config
        self._max_size = max_size
        self._jobs_per_process = jobs_per_process
        self._processes: set[HandlerProcess] = set()
        self._idle: dict[HandlerProcess, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def acquire(self, memory_mib: int | None) -> HandlerProcess:
        """Return a child for one job with this memory limit; raises ProcessStartError."""
        for child in reversed(self._idle):
            if child.fits(memory_mib):
                self._remove_idle(child)
                return child
        if self._idle and len(self._processes) >= self._max_size:
            self._retire(next(iter(self._idle)))
        return await self._start()

    def release(self, process: HandlerProcess, *, usable: bool) -> None:
        """Take back a child after its job; one that is not usable is killed."""
        process.jobs_run += 1
        if not usable or self._closed:
            process.kill()
        elif process.jobs_run == self._jobs_per_process or process.memory_usage.spent:
            self._in_background(process.end(END_SECONDS))
        elif not process.exited.done():
            loop = asyncio.get_running_loop()
            self._idle[process] = loop.call_later(IDLE_SECONDS, self._retire, process)

    async def close(self) -> None:
        """End all children: ask those without a job, kill the others, wait until all are gone."""
        self._closed = True
        for child in self._processes - self._idle.keys():
            child.kill()
        for child in list(self._idle):
            self._retire(child)
        gone = [child.exited for child in self._processes]
        await asyncio.gather(*self._tasks)
        if gone:
            await asyncio.wait(gone, timeout=END_SECONDS)
        await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    async def _start(self) -> HandlerProcess:
        if self._closed:
            raise WorkerError("the worker has ended its processes")
        child = await HandlerProcess.start(self._config)
        log.info("process for handlers started", pid=child.pid)
        self._processes.add(child)
        child.exited.add_done_callback(lambda _: self._on_exited(child))
        return child

    def _retire(self, process: HandlerProcess) -> None:
        self._remove_idle(process)
        self._in_background(process.end(END_SECONDS))

    def _remove_idle(self, process: HandlerProcess) -> None:
        self._idle.pop(process).cancel()

    def _on_exited(self, process: HandlerProcess) -> None:
        self._processes.discard(process)
        if process in self._idle:
            log.warning("an idle process for handlers has died", pid=process.pid)
            self._remove_idle(process)
            process.kill()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def describe_exit(code: int) -> str:
    """Return how the handler's process ended; `code` as subprocess has it, -N for a signal."""
    if code >= 0:
        return f"the handler's process ended with exit code {code}"
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        return f"the handler's process was killed by {name}, perhaps out of memory"
    return f"the handler's process died by {name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
