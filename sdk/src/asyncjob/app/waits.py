"""Waits of a handler that hold no slot: `job.sleep("cooling-off", hours=24)`, `job.signal(…)`.

A wait that is not over soon parks the job: the attempt ends, and once the wait is over the handler
is run again from its top, by whichever worker. Each step and each wait that is over returns at once
then. What leaves the handler as its job is parked is `Parked`, which is no Exception: what an
`except Exception` undoes must not be undone because a job sleeps. `finally` runs at each park.

A job is parked only while the body of no step runs, and no body is begun once it parks.
"""

import asyncio
import concurrent.futures
import functools
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from asyncjob.app.errors import (
    AttemptOverError,
    SignalInvalid,
    SignalTimeout,
    StepError,
    describe_validation_error,
)
from asyncjob.app.park_gate import GatedWait, Parked, ParkGate
from asyncjob.app.waiting_calls import WaitingCall
from asyncjob.json_types import JsonObject, as_object, child, flag, opt_number, text
from asyncjob.lifecycle.signals import MAX_SIGNAL_NAME_LENGTH, is_signal_name
from asyncjob.lifecycle.waits import MAX_SLEEP_SECONDS, WaitKind

T = TypeVar("T")

NO_TIME: Final = timedelta(0)


class WaitStore(Protocol):
    """Keeps the ends of one attempt's waits; called from the handler's thread."""

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":
        """Return 0 once the sleep is over, or the seconds that are left of it.

        With seconds left the attempt is to park as soon as it can.
        """

    def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return the signal, that its time is over, or that the attempt is to park.

        See `SignalAnswer.from_json`. `seconds` are those that the signal has to come; None means
        that it has no limit. `payload_schema` is shown to senders while the job is parked.
        """

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Record that the handler waits for it no longer: it does not wake the job."""


@dataclass(frozen=True, slots=True)
class SignalAnswer:
    """What has become of a wait for a signal: it is there, it has timed out, or neither."""

    signal: JsonObject | None = None
    timed_out: bool = False
    left: float | None = None
    """Seconds until it times out; None if it does not, or is over."""

    @classmethod
    def from_json(cls, answer: JsonObject) -> "SignalAnswer":
        """Read the form that crosses from one process to another."""
        signal = child(answer, "signal") if "signal" in answer else None
        return cls(signal, flag(answer, "timedOut"), opt_number(answer, "left"))

    def to_json(self) -> JsonObject:
        """Return the form that crosses from one process to another."""
        if self.signal is not None:
            return {"signal": self.signal}
        return {"timedOut": True} if self.timed_out else {"left": self.left}

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing left to wait for."""
        return self.timed_out or self.signal is not None


@dataclass(frozen=True, slots=True)
class SleepAnswer:
    """What is left of a sleep, in seconds."""

    left: float

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing left to wait for."""
        return self.left <= 0


class WaitCall(WaitingCall[None]):
    """A wait that is asked for: `await` it in an async handler, `.result()` waits in a sync one."""

    def __init__(self, waits: "Waits", key: str, seconds: float) -> None:
        self._waits = waits
        self._key = key
        self._seconds = seconds

    def _wait(self) -> Coroutine[Any, Any, None]:
        return self._waits.sleep(self._key, self._seconds)

    def result(self) -> None:
        """Return once the wait is over, in a sync handler, which may end here as well."""
        self.mark_taken()
        self._waits.sleep_blocking(self._key, self._seconds)


class SignalCall(WaitingCall[T]):
    """A signal that is waited for: `await` it in an async handler, `.result()` in a sync one."""

    def __init__(
        self, waits: "Waits", name: str, adapter: TypeAdapter[Any], seconds: float | None
    ) -> None:
        self._waits = waits
        self._name = name
        self._adapter = adapter
        self._seconds = seconds

    async def _wait(self) -> T:
        schema = payload_schema(self._adapter)
        return self._payload_of(await self._waits.signal(self._name, self._seconds, schema))

    def result(self) -> T:
        """Return its payload, in a sync handler, which may end here as well."""
        self.mark_taken()
        schema = payload_schema(self._adapter)
        return self._payload_of(self._waits.signal_blocking(self._name, self._seconds, schema))

    def _payload_of(self, answer: SignalAnswer) -> T:
        if answer.signal is None:
            raise SignalTimeout(f"signal {self._name!r} has not come in time")
        sender = text(answer.signal, "sentBy")
        why = f"signal {self._name!r} from {sender} cannot be taken"
        if refused := text(answer.signal, "payloadRefused"):
            raise SignalInvalid(f"{why}: {refused}; wait for a signal of another name")
        try:
            value: T = self._adapter.validate_json(orjson.dumps(answer.signal.get("payload")))
        except ValidationError as error:
            raise SignalInvalid(f"{why}: {describe_validation_error(error)}") from error
        except Exception as error:  # a validator of the handler's own may raise anything
            raise SignalInvalid(f"{why}: {type(error).__name__}: {error}") from error
        return value


class Waits:
    """The waits of one attempt; `known` has the records of those that earlier attempts began."""

    def __init__(self, known: JsonObject, store: WaitStore, gate: ParkGate) -> None:
        self._known = known
        self._store = store
        self._gate = gate
        self._senders: dict[str, str] = {}

    def sender_of(self, name: str) -> str:
        """Return who has sent a signal that was received; raises StepError for any other."""
        if name not in self._senders:
            raise StepError(f"signal {name!r} has not been received in this attempt")
        return self._senders[name]

    async def signal(
        self, name: str, seconds: float | None, schema: JsonObject | None
    ) -> SignalAnswer:
        """Return what has become of it once it is over; raises Parked if that parks the job."""
        wait = self._signal_wait(name, seconds, schema)
        return self._received(name, await wait.answer())

    def signal_blocking(
        self, name: str, seconds: float | None, schema: JsonObject | None
    ) -> SignalAnswer:
        """Return what has become of it once it is over, in a sync handler."""
        refuse_in_event_loop(f"signal {name!r}")
        wait = self._signal_wait(name, seconds, schema)
        return self._received(name, wait.answer_blocking())

    def _signal_wait(
        self, name: str, seconds: float | None, schema: JsonObject | None
    ) -> GatedWait[SignalAnswer]:
        self._gate.check_wait(f"signal {name!r}")
        self._check_kind(name, WaitKind.SIGNAL)
        return GatedWait(
            self._gate,
            name,
            f"signal {name!r} has not come",
            lambda: self._store.signal(name, seconds, schema),
            SignalAnswer.from_json,
            self._store.give_up,
        )

    def _received(self, name: str, answer: SignalAnswer) -> SignalAnswer:
        if answer.signal is not None:
            self._senders[name] = text(answer.signal, "sentBy")
        return answer

    def _check_kind(self, key: str, kind: WaitKind) -> None:
        """Raise StepError for a key that an earlier attempt, of other code, used differently."""
        before = text(as_object(self._known.get(key)), "kind")
        if before and before != kind:
            raise StepError(
                f"{kind.lower()} {key!r}: an earlier attempt of this job used the name for a "
                f"{before.lower()}; give it another one"
            )

    def is_over(self, key: str) -> bool:
        """Return whether the wait was over before this attempt."""
        return flag(as_object(self._known.get(key)), "over")

    async def sleep(self, key: str, seconds: float) -> None:
        """Return once the sleep is over; raises Parked if it parks the job."""
        wait = self._sleep_wait(key, seconds)
        if not self._was_over(key):
            await wait.answer()

    def sleep_blocking(self, key: str, seconds: float) -> None:
        """Return once the sleep is over, in a sync handler; raises Parked if it parks the job."""
        refuse_in_event_loop(f"sleep {key!r}")
        wait = self._sleep_wait(key, seconds)
        if not self._was_over(key):
            wait.answer_blocking()

    def _sleep_wait(self, key: str, seconds: float) -> GatedWait[SleepAnswer]:
        self._gate.check_wait(f"sleep {key!r}")
        self._check_kind(key, WaitKind.SLEEP)
        return GatedWait(
            self._gate,
            key,
            f"sleep {key!r} is not over",
            lambda: self._store.sleep(key, seconds),
            SleepAnswer,
            self._store.give_up,
        )

    def _was_over(self, key: str) -> bool:
        if self.is_over(key):
            self._gate.note_end()
            return True
        return False


WaitLimit = timedelta | float
"""How long a wait may take: a timedelta, or seconds."""


def seconds_of(what: str, duration: WaitLimit | None, parts: timedelta = NO_TIME) -> float:
    """Return how long a wait may take; raises StepError for what none can take."""
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    elif duration is not None and not isinstance(duration, int | float):
        raise StepError(f"{what}: {duration!r} is neither a timedelta nor seconds")
    seconds = (duration or 0) + parts.total_seconds()
    if not 0 <= seconds <= MAX_SLEEP_SECONDS:
        raise StepError(f"{what}: {seconds} s is not between 0 and {MAX_SLEEP_SECONDS} s")
    return seconds


@functools.lru_cache(maxsize=256)
def payload_schema(adapter: TypeAdapter[Any]) -> JsonObject | None:
    """Return the JSON schema of what a handler takes; None if it has none, or takes any JSON."""
    try:
        schema: JsonObject = orjson.loads(orjson.dumps(adapter.json_schema()))
    except Exception:  # noqa: BLE001  # a type may be anything, and a schema of its own raise anything
        return None
    return schema or None


def check_signal_name(name: str) -> None:
    """Raise StepError for what no signal can be called."""
    if not is_signal_name(name):
        raise StepError(
            f"signal {name[:MAX_SIGNAL_NAME_LENGTH]!r}: a name has 1 to {MAX_SIGNAL_NAME_LENGTH} "
            "letters, digits, dots, dashes and underscores, and begins with a letter or digit"
        )


def is_park(error: BaseException) -> bool:
    """Return whether a handler ended so because its job is parked, alone or in a task group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_park, error.exceptions))
    return isinstance(error, Parked)


def blocking_result(future: "concurrent.futures.Future[T]") -> T:
    """Wait for the worker in a sync handler; an attempt that is over ends the handler as a stop."""
    try:
        return future.result()
    except (AttemptOverError, concurrent.futures.CancelledError) as error:
        raise asyncio.CancelledError(str(error)) from error


def refuse_in_event_loop(what: str) -> None:
    """Raise StepError where an event loop runs: waiting there would block all that it runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise StepError(f"{what}: result() would block the event loop; await it instead")
