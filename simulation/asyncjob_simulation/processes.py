"""Simulated processes: how they start, stand still, and die at any await."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from typing import Any, Final

from asyncjob_simulation.event_loop import CURRENT, SimulatedTask, SimulationLoop, Thread

MAIN: Final = "main"
HEARTBEAT: Final = "heartbeat"
"""The name of the worker's second thread."""


class Process:
    """One process on one machine.

    `wall_offset` is how far its wall clock is off, in seconds. What is in `on_death` is called when
    it ends. A process that another has started (`parent`) stands still and ends with that.
    """

    def __init__(
        self,
        name: str,
        loop: SimulationLoop,
        *,
        wall_offset: float = 0.0,
        parent: "Process | None" = None,
    ) -> None:
        self.name = name
        self.parent = parent
        self.children: list[Process] = []
        if parent is not None:
            parent.children.append(self)
        self.loop = loop
        self.wall_offset = wall_offset
        self.is_alive = True
        self.held_since: float | None = None
        self.last_released = float("-inf")
        """When its main thread last went on after it had been held."""

        self.last_held = float("-inf")
        """When that began."""

        self.on_death: list[Callable[[], None]] = []
        self._threads: dict[str, Thread] = {}
        self._released: dict[str, float] = {}
        """When each of its threads last went on after it had been held."""

        self._graveyard: list[SimulatedTask] = []

    def spawn(self, work: Coroutine[Any, Any, Any], thread: str = MAIN) -> asyncio.Task[Any]:
        """Run a coroutine in a thread of the process."""
        context = Context()
        context.run(CURRENT.set, self.thread(thread))
        task = self.loop.create_task(work, context=context)
        if not self.is_alive:
            close_unstarted([task])
        return task

    def call(self, function: Callable[[], object], thread: str = MAIN) -> None:
        """Call a function in a thread of the process, as a signal handler is called."""
        context = Context()
        context.run(CURRENT.set, self.thread(thread))
        self.loop.call_soon(function, context=context)

    def thread(self, name: str) -> Thread:
        """Return one of its threads."""
        found = self._threads.get(name)
        if found is None:
            found = self._threads[name] = Thread(f"{self.name} {name}", self)
            found.is_dead = not self.is_alive
            if self.held_since is not None:
                found.held = 1
        return found

    def hold(self) -> None:
        """Stop it as SIGSTOP does."""
        if self.is_alive and self.held_since is None:
            self.held_since = self.last_held = self.loop.time()
            for thread in self._threads.values():
                self.loop.hold(thread)
            for child in self.children:
                child.hold()

    def release(self) -> None:
        """Let it go on as SIGCONT does."""
        if self.is_alive and self.held_since is not None:
            self.held_since = None
            self.last_released = self.loop.time()
            for name, thread in self._threads.items():
                self._released[name] = self.loop.time()
                self.loop.release(thread)
            for child in self.children:
                child.release()

    @property
    def container(self) -> "Process":
        """The first process of the container that it runs in, which holds leases."""
        return self.parent or self

    def stood_still(self, now: float, within: float, *threads: str) -> bool:
        """Return whether each of these threads stands still, or did a moment ago."""
        return all(
            self.thread(name).held > 0 or now - self._released.get(name, float("-inf")) <= within
            for name in threads
        )

    def block(self, seconds: float, thread: str = MAIN) -> None:
        """Block one thread for a while: a callback that does not return, a thread without CPU."""
        if thread == MAIN:
            self.last_held = self.loop.time()
        blocked = self.thread(thread)
        self.loop.hold(blocked)

        def unblock() -> None:
            if thread == MAIN:
                self.last_released = self.loop.time()
            self._released[thread] = self.loop.time()
            self.loop.release(blocked)

        self.loop.call_later(seconds, unblock, context=Context())

    def kill_after(self, callbacks: int) -> None:
        """Kill it after so many more callbacks of its main thread."""
        main = self.thread(MAIN)
        main.fuse, main.on_fuse = callbacks, self.kill

    def kill(self) -> None:
        """End it as SIGKILL does: nothing of it runs any more, not even to clean up."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._graveyard = [
            task
            for task in asyncio.all_tasks(self.loop)
            if isinstance(task, SimulatedTask) and task.thread and task.thread.owner is self
        ]  # else the coroutines would be closed, which runs their cleanup
        close_unstarted(self._graveyard)
        for thread in self._threads.values():
            self.loop.end(thread)
        for told in self.on_death:
            told()
        for child in self.children:
            child.kill()


def close_unstarted(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Close the coroutines of tasks that never begin, or Python says that nobody awaited them.

    A task may also end an asynchronous generator that was dropped. That is no coroutine, and left.
    """
    for task in tasks:
        work = task.get_coro()
        if iscoroutine(work) and getcoroutinestate(work) == CORO_CREATED:
            work.close()


def current_process() -> Process | None:
    """Return the process whose code is running; None for the world around them."""
    thread = CURRENT.get()
    return None if thread is None else thread.owner
