"""An event loop in virtual time, which runs the threads of many processes one step at a time.

Time stands still while anything is ready, then jumps to the next timer. Each thread of a simulated
process has a queue of its own, worked off in order, as its own event loop would; the seed decides
whose turn it is. So one seed is one interleaving, and another seed is another.

A thread may be held (SIGSTOP, an event loop that is blocked) or dead: its callbacks then wait, or
never run. Whose a callback is, is known by the context that asyncio runs it in.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVarTuple

Ts = TypeVarTuple("Ts")

FIRST_MOMENT: Final = 1_000.0
"""Where the clock of the event loop begins."""

TICK: Final = 1e-6
"""A timer comes so late at least: no machine turns without any time passing."""

MAX_STEPS_AT_ONCE: Final = 100_000
MOMENT: Final = 0.05
"""More callbacks than that within so many seconds are a loop that never ends."""


class StuckError(Exception):
    """Nothing is left that could ever happen, or callbacks follow each other without end."""


class Thread:
    """One thread of a simulated process, with the callbacks that are ready in it.

    `fuse` is the number of callbacks after which `on_fuse` is called, to kill at any await.
    """

    __slots__ = ("fuse", "held", "is_dead", "is_listed", "name", "on_fuse", "owner", "ready")

    def __init__(self, name: str, owner: Any = None) -> None:
        self.name = name
        self.owner = owner
        self.ready: deque[asyncio.Handle] = deque()
        self.held = 0
        self.is_dead = False
        self.is_listed = False
        self.fuse = -1
        self.on_fuse: Callable[[], None] = lambda: None


CURRENT: Final[ContextVar[Thread | None]] = ContextVar("asyncjob_simulation_thread", default=None)


class _Future(asyncio.Future[Any]):
    """Hashed by a number: sets of futures then have the same order in every process."""

    numbers = 0

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        _Future.numbers += 1
        self._number = _Future.numbers

    def __hash__(self) -> int:
        return self._number


class SimulatedTask(asyncio.Task[Any]):
    """Hashed by a number, like futures; knows its thread."""

    numbers = 0

    def __init__(
        self,
        coro: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
        *,
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
    ) -> None:
        SimulatedTask.numbers += 1
        self._number = SimulatedTask.numbers
        self.thread = CURRENT.get() if context is None else context.get(CURRENT)
        super().__init__(coro, loop=loop, name=f"task-{self._number}", context=context)

    def __hash__(self) -> int:
        return self._number


class SimulationLoop(asyncio.BaseEventLoop):
    """The one event loop of a simulation; `chance` decides whose turn it is."""

    _stopping: bool

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._now = FIRST_MOMENT
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Thread]] = []
        self._timer_count = 0
        self._world = Thread("world")
        self._runnable: list[Thread] = []
        self._steps_at_once = 0
        self._moment_ends = 0.0
        self.steps = 0
        _Future.numbers = SimulatedTask.numbers = 0  # whatever was simulated before
        self.set_task_factory(_make_task)

    # ---- what asyncio asks for

    def time(self) -> float:
        """Return virtual seconds."""
        return self._now

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Have a callback run in its thread, after those that are ready there."""
        handle = asyncio.Handle(callback, args, self, context)
        thread = CURRENT.get() if context is None else context.get(CURRENT)
        self._push(handle, thread or self._world)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a callback run after a while."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a callback run at a time."""
        timer = asyncio.TimerHandle(
            when,
            callback,
            args,
            self,
            context,
        )
        self._timer_count += 1
        thread = CURRENT.get() if context is None else context.get(CURRENT)
        heapq.heappush(self._timers, (when, self._timer_count, timer, thread or self._world))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future whose hash is the same in each run."""
        return _Future(loop=self)

    def run_in_executor(  # type: ignore[override]  # the result is there at once
        self, _: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call at once: there are no threads beside the simulated ones."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # whatever the call raises is its result
            future.set_exception(error)
        return future

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Do nothing: simulated processes get no signals."""

    def remove_signal_handler(self, _: int) -> bool:
        """Do nothing."""
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave it in the heap; it is passed over when its time comes."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there are no sockets."""

    def _write_to_self(self) -> None:
        """Do nothing: nobody else wakes this loop."""

    # ---- threads

    def hold(self, thread: Thread) -> None:
        """Let nothing of a thread run until it is released as often as it was held."""
        thread.held += 1

    def release(self, thread: Thread) -> None:
        """Let a held thread go on."""
        thread.held -= 1
        self._list(thread)

    def end(self, thread: Thread) -> None:
        """Let nothing of a thread ever run again."""
        thread.is_dead = True
        thread.ready.clear()

    def _push(self, handle: asyncio.Handle, thread: Thread) -> None:
        if thread.is_dead:
            return
        thread.ready.append(handle)
        if not thread.is_listed and not thread.held:
            thread.is_listed = True
            self._runnable.append(thread)

    def _list(self, thread: Thread) -> None:
        if thread.ready and not thread.is_listed and not thread.held:
            thread.is_listed = True
            self._runnable.append(thread)

    # ---- the turn of events

    def _run_once(self) -> None:
        if not self._runnable:
            self._advance()
            return
        count = len(self._runnable)
        index = int(self._chance.random() * count) if count > 1 else 0
        thread = self._runnable[index]
        self._run_ready(thread)
        if not thread.ready or thread.held:
            thread.is_listed = False
            self._runnable[index] = self._runnable[-1]
            self._runnable.pop()

    def _run_ready(self, thread: Thread) -> None:
        """Run what is ready in a thread, as one turn of its event loop would."""
        ready = thread.ready
        for _ in range(len(ready)):
            if not ready or thread.held:  # killed or held by what has just run
                return
            handle = ready.popleft()
            if handle._cancelled:  # noqa: SLF001  # what event loops are for
                continue
            if thread.fuse >= 0:
                thread.fuse -= 1
                if thread.fuse < 0:
                    thread.on_fuse()
                    return
            self.steps += 1
            self._steps_at_once += 1
            handle._run()  # noqa: SLF001  # what event loops are for
            if self._stopping:
                return
        if self._steps_at_once > MAX_STEPS_AT_ONCE:
            raise StuckError(f"{thread.name} does not stop at {self._now:.3f}")

    def _advance(self) -> None:
        """Go on to the next timer."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise StuckError("nothing is left to happen")
        self._now = max(self._now, timers[0][0]) + TICK
        if self._now > self._moment_ends:
            self._moment_ends, self._steps_at_once = self._now + MOMENT, 0
        while timers and timers[0][0] <= self._now:
            _, _, timer, thread = heapq.heappop(timers)
            if not timer.cancelled():
                self._push(timer, thread)


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coro: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
    context: Context | None = None,
) -> SimulatedTask:
    return SimulatedTask(coro, loop=loop, context=context)
