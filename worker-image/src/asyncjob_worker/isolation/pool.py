"""The handler processes, from the worker's side: starting, talking to, reusing and ending them.

A process is started when first needed and reused for further jobs. It gets one end of a socket and
nothing else of the worker's: no other file descriptor, an empty standard input, a session of its
own. It is started fresh, never forked from a process with threads, and from the event loop's
thread, which lives longest: on Linux a process dies with the *thread* that has started it.
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

log = structlog.get_logger()

CHILD_MODULE: Final = "asyncjob_worker.isolation.child"

IDLE_SECONDS = 300.0
"""A process without a job is ended after this time."""

END_SECONDS = 3.0
"""How long a process may take to end when it is asked to."""

_SOCKET_LINGER_SECONDS = 1.0
"""How long the socket of a dead process is still read, and how long a process that has closed its
socket may live."""

_READ_BYTES = 64 * 1024


class ProcessGroup:
    """One child process, the leader of its process group; the group is killed when it has ended."""

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

    def is_alive(self) -> bool:
        """Return whether it runs now, before the event loop hears of its end."""
        with self._reap_lock:
            if self._process.returncode is not None or not hasattr(os, "waitid"):
                return self._process.returncode is None
            with suppress(ChildProcessError):
                look = os.WEXITED | os.WNOWAIT | os.WNOHANG
                return os.waitid(os.P_PID, self.pid, look) is None
            return False

    def kill(self) -> None:
        """Kill it and everything it has started; from any thread."""
        with self._reap_lock:
            if self._process.returncode is None:
                _kill_group(self.pid)

    def _await_exit(self) -> None:
        if hasattr(os, "waitid"):
            # Not reaped before its group is killed, so that the group's ID cannot be reused.
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
    """Start a process; return it with the worker's end of the socket. Raises OSError."""
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
    """Reap what it has started: orphans are a container's first process's to reap."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


class ProcessStartError(WorkerError):
    """The handler's process cannot start."""

    code = "handler-process"


class HandlerProcess:
    """A handler process that has loaded its app. Used by one job at a time."""

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
            handler_process = cls(process, *await asyncio.open_unix_connection(sock=connection))
        except BaseException:
            process.kill()
            raise
        try:
            await handler_process._handshake(config)
        except BaseException:
            handler_process.kill()
            raise
        return handler_process

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    @property
    def exited(self) -> asyncio.Future[int]:
        """Its exit code once it has ended; -N if signal N has ended it."""
        return self._process.exited

    def is_alive(self) -> bool:
        """Return whether the process runs now; `exited` is a turn of the event loop later."""
        return self._process.is_alive()

    def fits(self, memory_mib: int | None) -> bool:
        """Return whether earlier jobs have used at most half of the memory that jobs may use.

        That is the limit less what the app and its resources take.
        """
        if memory_mib is None:
            return True
        at_first = self.memory_usage.at_first
        growth, room = self.memory_usage.memory - at_first, memory_mib * MIB - at_first
        return growth * 2 <= room

    def send(self, message: JsonObject) -> None:
        """Send a message; raises FrameTooLargeError. Does nothing if the process is dead."""
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        """Send a frame. Does nothing if the process is dead."""
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
                    f"the handler's process sent no valid message: {error}"
                ) from error
        return self._received.popleft()

    def kill(self) -> None:
        """Kill it and everything it has started, and close the socket."""
        self.kill_process()
        self._writer.transport.abort()

    def kill_process(self) -> None:
        """Kill the process and everything it has started, from any thread; keep the socket open."""
        self._process.kill()

    async def end(self, grace_seconds: float) -> None:
        """Ask it to end, and kill it if it has not within `grace_seconds`."""
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
        """Close the socket a little later, when it has been read.

        A process that has left the group may hold the other end, so that there is no end to read.
        """
        loop = asyncio.get_running_loop()
        loop.call_later(_SOCKET_LINGER_SECONDS, self._writer.transport.abort)


class ProcessPool:
    """Up to `max_size` handler processes.

    `jobs_per_process` is how many jobs one may run; 0 means any number.
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
        """Return a process for one job with this memory limit; raises ProcessStartError.

        Of the idle ones it is the one used last. If none fits and the pool is full, the one that
        has been idle longest is ended.
        """
        for process in reversed(self._idle):
            if process.fits(memory_mib) and process.is_alive():
                self._remove_idle(process)
                return process
        if self._idle and len(self._processes) >= self._max_size:
            self._retire(next(iter(self._idle)))
        return await self._start()

    def release(self, process: HandlerProcess, *, usable: bool) -> None:
        """Return a process after its job; one that is not usable is killed."""
        process.jobs_run += 1
        if not usable or self._closed:
            process.kill()
        elif process.jobs_run == self._jobs_per_process or process.memory_usage.spent:
            self._in_background(process.end(END_SECONDS))
        elif not process.exited.done():
            loop = asyncio.get_running_loop()
            self._idle[process] = loop.call_later(IDLE_SECONDS, self._retire, process)

    async def close(self) -> None:
        """End all processes: ask the idle ones, kill the others, wait until all are gone."""
        self._closed = True
        for process in self._processes - self._idle.keys():
            process.kill()
        for process in list(self._idle):
            self._retire(process)
        exited = [process.exited for process in self._processes]
        await asyncio.gather(*self._tasks)
        if exited:
            await asyncio.wait(exited, timeout=END_SECONDS)
        await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    async def _start(self) -> HandlerProcess:
        if self._closed:
            raise WorkerError("the worker has ended its processes")
        process = await HandlerProcess.start(self._config)
        log.info("process for handlers started", pid=process.pid)
        self._processes.add(process)
        process.exited.add_done_callback(lambda _: self._on_exited(process))
        return process

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
    """Return how the handler's process ended; `code` is -N if signal N has ended it."""
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
