"""Steps: calls that a handler makes once per job, because their results are kept.

A step is done once its result is stored in the job. An attempt that runs the handler again gets the
kept result in place of another call. The body of a step may so run more than once, if the worker
dies before the result is stored; its result is stored once.

What the handler gets is always what the kept JSON gives by the function's return annotation, the
first time as well: code that works with the result works with it in each later attempt.

A step that has to stop with its attempt raises CancelledError, in sync handlers as well. It is no
Exception: what an `except Exception` undoes must not be undone because a worker drains.
"""

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

import orjson
from pydantic import TypeAdapter, ValidationError

from asyncjob.app.child_jobs import ChildJobs, ChildRef, HeldChildWaits
from asyncjob.app.child_waits import ParkingChildWaits
from asyncjob.app.errors import (
    AttemptOverError,
    Fail,
    KeptResultError,
    Retry,
    StepError,
    StepRefusedError,
    describe_validation_error,
)
from asyncjob.app.park_gate import ParkGate
from asyncjob.app.waiting_calls import Forgotten
from asyncjob.app.waits import (
    SignalCall,
    WaitCall,
    Waits,
    blocking_result,
    check_signal_name,
    refuse_in_event_loop,
)
from asyncjob.free_json import FreeJsonError, dump, encode
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.step_records import MAX_STEP_KEY_LENGTH, MAX_STEPS
from asyncjob.tracing.context import step_span

T = TypeVar("T")

MAX_STEP_RESULT_BYTES: Final = 16 * 1024 * 1024
"""Largest result of a step that is handed to the store, as JSON."""

DEFAULT_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Pause before a step is tried again by itself: the first, doubled each time up to the second. The
backoff of the job is for whole attempts, whose lease and slot are given up meanwhile."""

_KEY_WORDS: Final = {"step": "key", "sleep": "key", "signal": "name"}
_KEY_ADVICE: Final = {
    "step": "give each step a key of its own",
    "sleep": "give each sleep a key of its own",
    "signal": "keep its payload in a variable, or wait for another name",
}

_FINAL_ERRORS: Final = (Fail, Retry, StepError, FreeJsonError, AttemptOverError)
"""Raised by a step these are for the attempt: the step is not tried again by itself."""


class StepStore(Protocol):
    """Keeps the results of one attempt's steps; called from the handler's thread.

    Futures are filled from any thread. They raise StepRefusedError for what cannot be kept, and
    AttemptOverError once the attempt is over.
    """

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Check that the step may be taken and that the job has room for it."""

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":
        """Keep the result of a step that has been begun."""

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Return the result of a step that is done and whose result is kept elsewhere."""

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":
        """Return 0 once the sleep is over, or the seconds that are left of it: see WaitStore."""

    def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return what has become of the wait for a signal: see WaitStore."""

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return what has become of the wait for children: see ChildWaitStore."""

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Record that the handler waits for something no longer: see WaitStore."""


class StepRunner(Protocol):
    """Runs an attempt whose handler may take steps; asked for their store at the first."""

    def open_steps(self) -> StepStore:
        """Return what keeps the results, the same each time."""


class NoSteps:
    """Stands where nothing keeps results."""

    def open_steps(self) -> StepStore:
        """Return itself."""
        return self

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Refuse."""
        raise StepError(f"step {key!r}: steps are not available in this runner")

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":  # noqa: ARG002
        """Refuse."""
        raise StepError(f"step {key!r}: steps are not available in this runner")

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Refuse."""
        raise StepError(f"step {key!r}: steps are not available in this runner")

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":  # noqa: ARG002
        """Refuse."""
        raise StepError(f"sleep {key!r}: sleeps are not available in this runner")

    def signal(
        self,
        name: str,
        seconds: float | None,  # noqa: ARG002
        payload_schema: JsonObject | None,  # noqa: ARG002
    ) -> "concurrent.futures.Future[JsonObject]":
        """Refuse."""
        raise StepError(f"signal {name!r}: signals are not available in this runner")

    def children(
        self,
        key: str,
        children: Sequence[ChildRef],  # noqa: ARG002
        seconds: float | None,  # noqa: ARG002
    ) -> "concurrent.futures.Future[JsonObject]":
        """Refuse."""
        raise StepError(f"{key}: waits without a slot are not available in this runner")

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Refuse: nothing is waited for."""
        raise StepError(f"{key}: waits without a slot are not available in this runner")


NO_STEPS: Final = NoSteps()


@dataclass(frozen=True, slots=True)
class StepBody:
    """What a step calls, how its result becomes JSON, and how often it is tried by itself."""

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    adapter: TypeAdapter[Any]
    retries: int
    pause: float

    def pause_after(self, tries: int) -> float:
        """Return how many seconds to wait after this many tries."""
        return min(self.pause * float(2 ** min(tries - 1, 30)), LONGEST_PAUSE_SECONDS)

    def to_json(self, value: object) -> Json:
        """Return a result as JSON; raises StepRefusedError."""
        what = f"the result of step {self.key!r}"
        try:
            data = encode(
                dump(self.adapter, value, what=what), what=what, max_bytes=MAX_STEP_RESULT_BYTES
            )
        except FreeJsonError as error:
            raise StepRefusedError(str(error)) from error
        except Exception as error:  # a serializer of the handler's own may raise anything
            raise StepRefusedError(f"{what} is not JSON: {error}") from error
        plain: Json = orjson.loads(data)
        return plain

    def from_json(self, plain: Json) -> Any:
        """Return the result that was kept; raises KeptResultError if it does not fit its type."""
        try:
            return self.adapter.validate_json(orjson.dumps(plain))
        except ValidationError as error:
            why = describe_validation_error(error)
        except Exception as error:  # noqa: BLE001  # a validator of the handler's own may raise anything
            why = f"{type(error).__name__}: {error}"
        raise KeptResultError(
            f"the kept result of step {self.key!r} does not fit its type: {why}. Give the step "
            "another key, or let its type accept what is kept"
        )


class StepCall(Generic[T]):
    """A step that is asked for: `await` it in an async handler, `.result()` takes it in a sync one.

    Nothing happens before that.
    """

    def __init__(self, steps: "Steps", body: StepBody) -> None:
        self._steps = steps
        self._body = body

    def __bool__(self) -> bool:
        """Refuse: who asks whether it is true has forgotten to wait for it."""
        raise StepError(
            f"step {self._body.key!r} is asked whether it is true, and not taken: `await` it, or "
            "call `.result()` in a sync handler"
        )

    def __await__(self) -> Generator[Any, None, T]:
        """Return the kept result, or take the step."""
        return self._steps.take(self._body).__await__()

    def result(self) -> T:
        """Return the kept result, or take the step, in a sync handler."""
        taken: T = self._steps.take_blocking(self._body)
        return taken


class Steps:
    """The steps of one attempt, and its waits, whose keys are of one kind with theirs.

    `done` has the records of the steps that earlier attempts have taken, `waits` those of the waits
    that they have begun; `type_` is that of the job, for traces. `forgotten` has the waits that the
    handler has dropped.
    """

    def __init__(
        self,
        done: JsonObject,
        store: StepStore,
        stopping: threading.Event,
        type_: str,
        waits: JsonObject | None = None,
        *,
        forgotten: Forgotten | None = None,
    ) -> None:
        self._done = done
        self._store = store
        self._stopping = stopping
        self._type = type_
        self._forgotten = forgotten or Forgotten()
        self._gate = ParkGate(self._forgotten)
        self._waits = Waits(waits or {}, store, self._gate)
        self._child_waits: ParkingChildWaits | None = None
        self._known = done.keys() | (waits or {}).keys()
        self._named: set[str] = set()
        self._untaken: set[str] = set()
        self._lock = threading.Lock()

    def call(
        self,
        key: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        retries: int,
        pause: float,
    ) -> StepCall[Any]:
        """Return the call of a step; raises StepError for what no step can be."""
        _check_key(key)
        if type(retries) is not int or retries < 0 or pause < 0:
            raise StepError(f"step {key!r}: retries and pause are 0 or more")
        body = StepBody(key, function, arguments, result_adapter(key, function), retries, pause)
        with self._lock:
            self._name("step", key)
            self._untaken.add(key)
        return StepCall(self, body)

    def sleep(self, key: str, seconds: float) -> WaitCall:
        """Return the call of a sleep; raises StepError for what no sleep can be."""
        _check_key(key)
        with self._lock:
            self._name("sleep", key)
        call = WaitCall(self._waits, key, seconds)
        call.expect(f"sleep {key!r}", self._forgotten)
        return call

    def signal(self, name: str, type_: Any, seconds: float | None) -> SignalCall[Any]:
        """Return the call of a wait for a signal; raises StepError for what none can be."""
        check_signal_name(name)
        try:
            adapter = _adapter(type_)
        except Exception as error:  # a type may be anything
            raise StepError(f"signal {name!r}: it cannot be checked: {error}") from error
        with self._lock:
            self._name("signal", name)
        call: SignalCall[Any] = SignalCall(self._waits, name, adapter, seconds)
        call.expect(f"signal {name!r}", self._forgotten)
        return call

    def child_waits(self, jobs: ChildJobs) -> ParkingChildWaits:
        """Return what waits for children, the same each time; `jobs` looks at them."""
        with self._lock:
            if self._child_waits is None:
                held = HeldChildWaits(jobs)
                self._child_waits = ParkingChildWaits(
                    self._store, self._gate, self._take_room, held
                )
            return self._child_waits

    def _take_room(self, key: str) -> bool:
        """Return whether the job may keep the end of one more wait, and count it."""
        with self._lock:
            if key not in self._known and len(self._known | self._named) >= MAX_STEPS:
                return False
            self._named.add(key)
            return True

    def sender_of(self, name: str) -> str:
        """Return who has sent a signal that was received."""
        return self._waits.sender_of(name)

    def check_wait(self, what: str) -> None:
        """Raise StepError where no wait may begin."""
        self._gate.check_wait(what)

    def _name(self, what: str, key: str) -> None:
        self._gate.check()
        if key in self._named:
            raise StepError(
                f"{what} {key!r}: the handler has used this {_KEY_WORDS[what]} before in this "
                f"attempt; {_KEY_ADVICE[what]}"
            )
        if key not in self._known and len(self._known | self._named) >= MAX_STEPS:
            raise StepRefusedError(
                f"{what} {key!r}: a job keeps {MAX_STEPS} steps and waits, and has them"
            )
        self._named.add(key)

    def check_all_taken(self) -> None:
        """Raise StepError for a step that was asked for and neither awaited nor taken.

        And for a handler that has not ended though its job was to be parked. What it returns may
        not count: one that waits by `asyncio.wait`, or gathers errors as values, takes a wait that
        has parked the job for one that is over.
        """
        if self._gate.parked:
            raise StepError(
                f"the job was to be parked ({self._gate.parked_for}), but its handler went on to "
                "its end. Either it caught Parked, which has to end it: let it through. Or it "
                "waited in a task in the background: await that task before the end, or do what is "
                "to go on meanwhile in a step: no job is parked while one runs"
            )
        self._gate.check()
        for key in sorted(self._untaken):
            raise StepError(
                f"step {key!r} was not taken: `await` it, or call `.result()` in a sync handler"
            )

    async def take(self, body: StepBody) -> Any:
        """Return the kept result, or take the step, in an async handler."""
        self._mark_taken(body.key)
        if body.key in self._done:
            self._gate.note_end()
            with self._taking_kept():
                kept = self._kept(body.key)
                return body.from_json(await _waited(kept) if _is_future(kept) else kept)
        with self._gate.body(body.key):
            await _waited(self._begin(body.key))
            value, stopped = await self._tried(body)
            if stopped is not None:
                with suppress(Exception):  # the stop counts; the next attempt takes it again
                    await self._keep(body, value)
                raise stopped
            plain = await self._keep(body, value)
        with self._taking_kept():
            return body.from_json(plain)

    @contextmanager
    def _taking_kept(self) -> Iterator[None]:
        """Have nothing more begun in this attempt if a kept result cannot be taken."""
        try:
            yield
        except (StepError, KeptResultError) as error:
            raise self._gate.fail(KeptResultError(str(error))) from error

    async def _keep(self, body: StepBody, value: object) -> Json:
        """Store a result, and return it as it is stored."""
        plain = body.to_json(value)
        await _waited(_checked(self._store.store, body.key, plain))
        return plain

    def take_blocking(self, body: StepBody) -> Any:
        """Return the kept result, or take the step, in a sync handler."""
        refuse_in_event_loop(f"step {body.key!r}")
        self._mark_taken(body.key)
        if body.key in self._done:
            self._gate.note_end()
            with self._taking_kept():
                kept = self._kept(body.key)
                return body.from_json(blocking_result(kept) if _is_future(kept) else kept)
        with self._gate.body(body.key):
            blocking_result(self._begin(body.key))
            plain = body.to_json(self._tried_blocking(body))
            blocking_result(_checked(self._store.store, body.key, plain))
        with self._taking_kept():
            return body.from_json(plain)

    def _mark_taken(self, key: str) -> None:
        """Raise StepError for a step that is taken a second time: its body would run again."""
        self._gate.check()
        with self._lock:
            if key in self._untaken:
                self._untaken.remove(key)
                return
        raise StepError(
            f"step {key!r} was taken before in this attempt: keep its result in a variable"
        )

    def _begin(self, key: str) -> "concurrent.futures.Future[None]":
        if self._stopping.is_set():
            raise _stopped(key)
        return _checked(self._store.begin, key)

    def _kept(self, key: str) -> Any:
        """Return the kept result, or a future of it where it is kept elsewhere."""
        record = self._done[key]
        if isinstance(record, Mapping) and "resultRef" in record:
            return _checked(self._store.load, key)
        return record.get("result") if isinstance(record, Mapping) else None

    async def _tried(self, body: StepBody) -> "_Called":
        tries = 0
        while True:
            tries += 1
            try:
                with step_span(self._type, body.key):
                    return await _called(body, self._stopping)
            except _FINAL_ERRORS:
                raise
            except Exception:
                if tries > body.retries:
                    raise
            await asyncio.sleep(body.pause_after(tries))

    def _tried_blocking(self, body: StepBody) -> object:
        tries = 0
        while True:
            tries += 1
            try:
                with step_span(self._type, body.key):
                    return _called_blocking(body)
            except _FINAL_ERRORS:
                raise
            except Exception:
                if tries > body.retries:
                    raise
            if self._stopping.wait(body.pause_after(tries)):
                raise _stopped(body.key)


def _check_key(key: str) -> None:
    if not 0 < len(key) <= MAX_STEP_KEY_LENGTH or not key.isprintable():
        raise StepError(
            f"step {key[:MAX_STEP_KEY_LENGTH]!r}: a key has 1 to {MAX_STEP_KEY_LENGTH} "
            "printable characters"
        )


_Called = tuple[object, asyncio.CancelledError | None]
"""What a body has returned, and the stop of the attempt that came meanwhile."""


async def _called(body: StepBody, stopping: threading.Event) -> _Called:
    """Call an async function in the handler's task, and a plain one in a thread.

    A thread cannot be interrupted: where the attempt has to stop, what the body returns is waited
    for, so that it can be kept.
    """
    if inspect.iscoroutinefunction(body.function):
        return await body.function(*body.arguments), None
    call = functools.partial(contextvars.copy_context().run, body.function, *body.arguments)
    thread = asyncio.get_running_loop().run_in_executor(None, call)
    stopped = await _stop_before_end(thread, stopping)
    if stopped is None:
        value: object = thread.result()
        return (await value if inspect.isawaitable(value) else value), None
    if thread.cancelled() or thread.exception() is not None:
        raise stopped
    value = thread.result()
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise stopped
    return value, stopped


async def _stop_before_end(
    thread: "asyncio.Future[object]", stopping: threading.Event
) -> asyncio.CancelledError | None:
    """Wait for a thread's end, and return the stop of the attempt if it came before.

    Any other cancellation, such as a time limit of the handler's own, goes on at once.
    """
    stopped: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait({thread})
        except asyncio.CancelledError as error:
            if not stopping.is_set():
                thread.cancel()
                raise
            stopped = error
    return stopped


def _called_blocking(body: StepBody) -> object:
    value: object = body.function(*body.arguments)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise StepError(
            f"step {body.key!r} calls an async function: `await` it, in an async handler"
        )
    return value


def _checked(call: Callable[..., T], key: str, *arguments: Any) -> T:
    """Call the store; an attempt that is over ends the step as a stop does."""
    try:
        return call(key, *arguments)
    except AttemptOverError as error:
        raise _stopped(key) from error


def _stopped(key: str) -> asyncio.CancelledError:
    return asyncio.CancelledError(f"step {key!r}: the attempt has to stop")


def _is_future(value: object) -> bool:
    return isinstance(value, concurrent.futures.Future)


async def _waited(future: "concurrent.futures.Future[T]") -> T:
    """Wait for the store; a handler that is stopped meanwhile does not call the write back."""
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except AttemptOverError as error:
        raise asyncio.CancelledError(str(error)) from error


def result_adapter(key: str, function: Callable[..., Any]) -> TypeAdapter[Any]:
    """Return what checks the results of a function by its annotation; any JSON without one."""
    try:
        hint = _unwrapped(get_type_hints(_annotated(function)).get("return", Any))
        return _adapter(hint)
    except Exception as error:  # an annotation may name anything, or nothing that is there
        raise StepError(f"step {key!r}: its result cannot be checked: {error}") from error


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that has the annotations: of a partial, or of an object to call."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def _unwrapped(hint: Any) -> Any:
    """Return the type that awaiting gives, where a plain function returns an awaitable."""
    if get_origin(hint) in (Awaitable, Coroutine) and get_args(hint):
        return get_args(hint)[-1]
    return hint


@functools.lru_cache(maxsize=256)
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)
