"""Runs coroutines for callers without an event loop: in a thread's loop, or where they are."""

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, Unpack

from asyncjob.daemon_threads import run_in_daemon_thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CLOSED: Final = "the client is closed; make another one"

CANCEL_SECONDS: Final = 1.0
"""How long an interrupted caller waits until what it began has ended in the thread.

An iterator cannot be closed before. What does not end in time is left to itself.
"""

CloseLast = Callable[[], Awaitable[None]]


class Portal:
    """Runs coroutines in its thread; callers wait for them.

    The thread begins with the first of them. A forked process has no copy of it, and begins one of
    its own.
    """

    def __init__(self) -> None:
        self.closed = False
        # Reentrant: the garbage collector may close an iterator where the lock is held already.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._inherited: list[asyncio.AbstractEventLoop] = []
        _portals.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns; an interrupt of the caller cancels it.

        Raises RuntimeError where the portal is closed, also while the coroutine runs.
        """
        begun = _Work(work)
        loop = self._submit(begun)
        try:
            return begun.done.result()
        except CancelledError:
            if self.closed:
                raise RuntimeError(_CLOSED) from None
            raise
        except BaseException:
            if not begun.done.done():  # the caller was interrupted; the work did not fail
                with suppress(RuntimeError, TimeoutError):
                    loop.call_soon_threadsafe(begun.cancel)
                    begun.done.exception(CANCEL_SECONDS)
            raise
        finally:
            # Its error has this frame in its traceback: together they would keep the client.
            del begun

    def iterate(self, values: AsyncGenerator[T]) -> Iterator[T]:
        """Yield what the generator yields, each once it is asked for."""
        try:
            while (found := self.run(_next_of(values))) is not None:
                yield found[0]
        finally:
            self._close_generator(values)

    def close(self, last: CloseLast | None = None) -> None:
        """End what still runs, then do the `last` thing, then end the thread; once."""
        thread = self._thread
        closing = self.begin_close(last)
        if closing is None or thread is None or thread is threading.current_thread():
            return
        thread.join()
        closing.result()

    def begin_close(self, last: CloseLast | None = None) -> "Future[None] | None":
        """Close without waiting for the end, which a garbage collector may do in any thread.

        Returns None where there is nothing to be ended.
        """
        with self._lock:
            loop, was_closed, self.closed = self._loop, self.closed, True
            if was_closed or loop is None:
                return None
            ending = _Work(_cancel_all_and_close(last))
            ending.done.add_done_callback(lambda _: loop.stop())
            loop.call_soon_threadsafe(ending.begin)
            return ending.done

    def forget_thread(self) -> None:
        """Begin again in a forked process, where only the thread that forked goes on."""
        self._lock = threading.RLock()  # its holder is not in this process to release it
        if self._loop is not None:
            # What belongs to it is the parent's to close: it is neither collected now, which would
            # close sockets that are shared, nor complained about at the end.
            self._inherited.append(self._loop)
            self._loop.set_exception_handler(lambda _loop, _context: None)
        self._loop = self._thread = None

    def _submit(self, begun: "_Work[Any]") -> asyncio.AbstractEventLoop:
        with self._lock:
            if self.closed or self._thread is threading.current_thread():
                begun.work.close()
                raise RuntimeError(_CLOSED if self.closed else "a client cannot wait for itself")
            if self._loop is None:
                self._loop = _Loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="asyncjob-client", daemon=True
                )
                self._thread.start()
            self._loop.call_soon_threadsafe(begun.begin)
            return self._loop

    def _close_generator(self, values: AsyncGenerator[Any]) -> None:
        if self.closed:
            return  # all generators were closed with it
        if self._thread is threading.current_thread() and self._loop is not None:
            self._loop.create_task(_aclose(values))  # the garbage collector happened to run here
            return
        with suppress(RuntimeError):  # closed meanwhile
            self.run(_aclose(values))


class _Work(Generic[T]):
    """A coroutine on its way through the thread; `done` tells the one that waits."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.work = work
        self.done: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Begin it; called in the thread, in the context of the one that waits."""
        self._task = asyncio.get_running_loop().create_task(self.work)
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Cancel it; called in the thread."""
        if self._task is not None:
            self._task.cancel()

    def _settle(self, task: asyncio.Task[T]) -> None:
        error = CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.done.set_result(task.result())
        else:
            self.done.set_exception(error)


class _Loop(asyncio.SelectorEventLoop):
    """Has what blocks, as a lookup of a host's name does, done in daemon threads.

    The interpreter waits at its end for the threads of an executor, and lets it begin no others:
    a server that does not answer would hold up the end, and nothing could be submitted at exit.
    """

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        if executor is None:
            return run_in_daemon_thread(partial(func, *args), "asyncjob-client-call")
        return super().run_in_executor(executor, func, *args)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _cancel_all_and_close(last: CloseLast | None) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    if last is not None:
        await last()


async def _next_of(values: AsyncGenerator[T]) -> tuple[T] | None:
    """Return the next value; None once there are none left."""
    async for value in values:
        return (value,)
    return None


async def _aclose(values: AsyncGenerator[Any]) -> None:
    await values.aclose()


def run_in_place(work: Awaitable[T]) -> T:
    """Return what comes of something that blocks where others wait for an event loop.

    Driven by hand, because `asyncio.run` makes a loop for each call and refuses to run where the
    caller's own loop runs, as in a notebook.
    """
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise RuntimeError("the call waits for an event loop, which a synchronous client lacks")


def iterate_in_place(values: AsyncGenerator[T]) -> Iterator[T]:
    """Yield what such a generator yields."""
    try:
        while (found := run_in_place(_next_of(values))) is not None:
            yield found[0]
    finally:
        run_in_place(values.aclose())


_portals: "weakref.WeakSet[Portal]" = weakref.WeakSet()


def _forget_threads() -> None:
    for portal in list(_portals):
        portal.forget_thread()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_threads)
