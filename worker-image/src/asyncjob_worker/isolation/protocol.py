"""The messages between the worker and a handler process.

On the socket each is a length, four bytes big-endian, and as many bytes of JSON.

Worker to process: begin (once), run, stop, taken (acknowledges a report), answer, end.
Process to worker: ready or unable (once), report, ask (numbered, about child jobs, steps and
files), forget (an answer that is no longer wanted), done or failed.
"""

import base64
import struct
from collections.abc import Iterator, Sequence
from dataclasses import Field, asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol, TypeVar

import orjson

from asyncjob import deep_json, errors
from asyncjob.app import JobInfo, JobParent
from asyncjob.app import errors as app_errors
from asyncjob.app.child_jobs import ChildRef, ChildView, view_to_json, with_its_types
from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.error_report import ErrorKind, ErrorReport
from asyncjob.deep_json import MAX_WRITTEN_LEVELS
from asyncjob.errors import ApiError, AsyncJobError, InvalidError
from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_number,
    text,
    texts,
)
from asyncjob.lifecycle.phase_change import MAX_ERROR_MESSAGE_LENGTH, truncate
from asyncjob.offload import errors as offload_errors
from asyncjob.offload.store import ObjectStat
from asyncjob_worker.errors import WorkerError

MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of the largest frame; a payload or result has to fit, with the fields around it."""

_FRAME_LENGTH: Final = struct.Struct(">I")


class FrameError(WorkerError):
    """What came over the socket is no frame."""


class FrameTooLargeError(FrameError):
    """The frame is larger than the socket takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size} bytes as JSON, a handler's process takes {limit}")
        self.size = size


class FrameTooDeepError(FrameError):
    """The frame is nested deeper than the encoder goes."""

    def __init__(self) -> None:
        super().__init__(
            f"with what belongs to it, it is nested deeper than {MAX_WRITTEN_LEVELS} levels, a "
            "handler's process takes no more; make it flatter"
        )


def encode(message: JsonObject, *, limit: int = MAX_BYTES) -> bytes:
    """Return the message as a frame; raises FrameTooLargeError and FrameTooDeepError."""
    try:
        body = deep_json.encode(message)
    except InvalidError as error:
        raise FrameTooDeepError from error
    if len(body) > limit:
        raise FrameTooLargeError(len(body), limit)
    return _FRAME_LENGTH.pack(len(body)) + body


class FrameDecoder:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self, *, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[JsonObject]:
        """Add a piece and yield the messages that are complete now; raises FrameError."""
        self._data += data
        while (body := self._next()) is not None:
            yield _parse_frame(body)

    def _next(self) -> bytes | None:
        if len(self._data) < _FRAME_LENGTH.size:
            return None
        (size,) = _FRAME_LENGTH.unpack_from(self._data)
        if size > self._limit:
            raise FrameTooLargeError(size, self._limit)
        end = _FRAME_LENGTH.size + size
        if len(self._data) < end:
            return None
        body = bytes(memoryview(self._data)[_FRAME_LENGTH.size : end])
        del self._data[:end]
        return body


def _parse_frame(body: bytes) -> JsonObject:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"a frame of {len(body)} bytes is not JSON") from error
    if not isinstance(message, dict):
        raise FrameError(f"a frame of {len(body)} bytes is not an object")
    return message


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Dataclass)


class MessageType(StrEnum):
    """The type of a message, in its field `is`."""

    BEGIN = "begin"
    RUN = "run"
    STOP = "stop"
    TAKEN = "taken"
    END = "end"
    READY = "ready"
    UNABLE = "unable"
    REPORT = "report"
    ASK = "ask"
    FORGET = "forget"
    ANSWER = "answer"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """What a handler process has to know of its worker. `path` is the module search path."""

    app: str
    path: list[str]
    log_format: str = "text"
    max_free_json: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One job to run. `ends_at` is when it times out, in seconds of the lease clock."""

    info: JobInfo
    payload: Json
    ends_at: float
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """What memory a handler process holds, in bytes."""

    memory: int = 0
    at_first: int = 0
    """What it held before its first job, plus the resources opened since."""

    spent: bool = False
    """Whether the process should run no further jobs."""


STOP_MESSAGE: Final[JsonObject] = {"is": MessageType.STOP}
TAKEN_MESSAGE: Final[JsonObject] = {"is": MessageType.TAKEN}
END_MESSAGE: Final[JsonObject] = {"is": MessageType.END}


def message_type(message: JsonObject) -> str:
    """Return the type of a message."""
    return text(message, "is")


def begin_message(config: ProcessConfig) -> JsonObject:
    """Return the first message to a handler process."""
    return {"is": MessageType.BEGIN, **asdict(config)}


def read_begin(message: JsonObject) -> ProcessConfig:
    """Read the first message to a handler process."""
    return read_fields(ProcessConfig, message)


def run_message(request: RunRequest) -> JsonObject:
    """Return the message that starts a job."""
    return {"is": MessageType.RUN, **shallow_dict(request), "info": _job_info_fields(request.info)}


def read_run(message: JsonObject) -> RunRequest:
    """Read the message that starts a job."""
    info = read_fields(JobInfo, child(message, "info"))
    if info.parent is not None:
        parent = read_fields(JobParent, child(child(message, "info"), "parent"))
        info = replace(info, parent=parent)
    return replace(read_fields(RunRequest, message), info=info)


def ready_message(usage: MemoryUsage) -> JsonObject:
    """Return the message of a process that has loaded its app."""
    return {"is": MessageType.READY, **asdict(usage)}


def unable_message(why: str) -> JsonObject:
    """Return the message of a process that cannot load its app."""
    return {"is": MessageType.UNABLE, "why": why}


def done_message(result: Json, usage: MemoryUsage) -> JsonObject:
    """Return the message of a handler that has returned."""
    return {"is": MessageType.DONE, "result": result, **asdict(usage)}


def failed_message(report: ErrorReport, usage: MemoryUsage) -> JsonObject:
    """Return the message of a handler that has raised."""
    error = {**asdict(report), "message": truncate(report.message, MAX_ERROR_MESSAGE_LENGTH)}
    return {"is": MessageType.FAILED, "error": error, **asdict(usage)}


def read_error(message: JsonObject) -> ErrorReport:
    """Read what a handler has raised; raises FrameError."""
    error = child(message, "error")
    try:
        kind = ErrorKind(text(error, "kind"))
    except ValueError as unknown:
        raise FrameError(f"an error of an unknown kind: {unknown}") from None
    return ErrorReport(
        kind,
        text(error, "type"),
        text(error, "category"),
        text(error, "message"),
        opt_number(error, "retry_after"),
    )


def read_result(message: JsonObject) -> Json:
    """Read what a handler has returned; raises FrameError."""
    if "result" not in message:
        raise FrameError("a handler that has returned, without its result")
    return message["result"]


def read_progress(message: JsonObject) -> tuple[int, str | None] | None:
    """Read the percentage and words of a report, None if it has none; raises FrameError."""
    match message.get("progress"):
        case None:
            return None
        case [int(percent), str() | None as words]:
            return percent, words
        case _:
            raise FrameError("a progress that is not a number and words")


def read_memory_usage(message: JsonObject) -> MemoryUsage:
    """Read the memory usage of a process."""
    return MemoryUsage(
        integer(message, "memory"), integer(message, "at_first"), flag(message, "spent")
    )


def _job_info_fields(info: JobInfo) -> dict[str, Any]:
    return {**shallow_dict(info), "parent": info.parent and shallow_dict(info.parent)}


def shallow_dict(value: Any) -> dict[str, Any]:
    """Return the fields without a deep copy of the free JSON in them."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def read_fields(kind: type[T], message: JsonObject) -> T:
    """Read a dataclass of plain values; raises FrameError where one is missing."""
    try:
        known: dict[str, Any] = {name: message[name] for name in kind.__dataclass_fields__}
    except KeyError as error:
        raise FrameError(f"a message lacks {error}") from None
    return kind(**known)


def error_to_json(error: BaseException) -> JsonObject:
    """Return an error as JSON: its class and base classes, its message, an API error's status."""
    names: list[Json] = [class_.__name__ for class_ in type(error).__mro__]
    plain: dict[str, Json] = {"classes": names, "message": str(error)}
    if isinstance(error, ApiError):
        plain |= {"status": error.status, "reason": error.reason}
    return plain


def error_from_json(plain: JsonObject) -> Exception:
    """Return an error of the same class, or of its nearest base class that is known here."""
    names, message = texts(plain, "classes"), text(plain, "message")
    class_ = next((_KNOWN_ERRORS[name] for name in names if name in _KNOWN_ERRORS), None)
    if class_ is None:
        return AsyncJobError(f"{names[0]}: {message}" if names else message)
    error = class_(message)
    if isinstance(error, ApiError):
        error.status, error.reason = integer(plain, "status"), text(plain, "reason")
    return error


def _error_classes() -> Iterator[type[Exception]]:
    yield from (TimeoutError, ValueError)
    for module in (errors, app_errors, offload_errors):
        for class_ in vars(module).values():
            if isinstance(class_, type) and issubclass(class_, AsyncJobError):
                yield class_


_KNOWN_ERRORS: Final = {kind.__name__: kind for kind in _error_classes()}


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """Submit a child."""

    manifest: ChildManifest


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """Wait for a child to finish, for `timeout` seconds."""

    child: ChildRef
    timeout: float | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """List all children."""


class StepVerb(StrEnum):
    """What is asked about a step, see `StepStore`."""

    BEGIN = "begin"
    STORE = "store"
    LOAD = "load"
    SLEEP = "sleep"
    SIGNAL = "signal"
    CHILDREN = "children"
    GIVE_UP = "give-up"


@dataclass(frozen=True, slots=True)
class StepRequest:
    """Begin a step, store its result, load that of one that is done; or sleep `value` seconds.

    Or wait for the signal `key`, see `signal_value`; or for the children in `value`, see
    `children_value`; or wait for `key` no longer.
    """

    verb: StepVerb
    key: str
    value: Json = None


def signal_value(seconds: float | None, payload_schema: JsonObject | None) -> Json:
    """Return the value of a request to wait for a signal."""
    return {"seconds": seconds, "payloadSchema": payload_schema}


def read_signal_value(value: Json) -> tuple[float | None, JsonObject | None]:
    """Read that value."""
    plain = as_object(value)
    return opt_number(plain, "seconds"), child(plain, "payloadSchema") or None


def children_value(children: Sequence[ChildRef], seconds: float | None) -> Json:
    """Return the value of a request to wait for children."""
    return {"children": [shallow_dict(one) for one in children], "seconds": seconds}


def read_children_value(value: Json) -> tuple[list[ChildRef], float | None]:
    """Read that value; raises FrameError."""
    plain = as_object(value)
    children = [read_fields(ChildRef, as_object(one)) for one in items(plain, "children")]
    return children, opt_number(plain, "seconds")


@dataclass(frozen=True, slots=True)
class FileRequest:
    """Read a part of a file, in bytes; without one tell its size and version."""

    uri: str
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ResultRequest:
    """Write an object with results of items, in a folder of the folder at `uri`."""

    uri: str
    folder: str
    name: str
    data: bytes


ChildJobRequest = SubmitRequest | WaitRequest | ListRequest
WorkerRequest = ChildJobRequest | StepRequest | FileRequest | ResultRequest
"""What a handler in a process of its own asks its worker for."""


def ask_message(number: int, request: WorkerRequest) -> JsonObject:
    """Return the message that sends a request; `number` identifies its answer."""
    message: dict[str, Json] = {"is": MessageType.ASK, "number": number}
    match request:
        case SubmitRequest(manifest):
            return {**message, "submit": shallow_dict(manifest)}
        case WaitRequest(ref, timeout):
            return {**message, "wait": shallow_dict(ref), "timeout": timeout}
        case StepRequest():
            return {**message, "step": shallow_dict(request)}
        case FileRequest(uri, part):
            return {**message, "file": uri, "part": part and list(part)}
        case ResultRequest(uri, folder, name, data):
            return {**message, "results": uri, "at": [folder, name], "data": _as_base64(data)}
        case ListRequest():
            return message


def read_request(message: JsonObject) -> WorkerRequest:
    """Read a request; raises FrameError."""
    if "submit" in message:
        return SubmitRequest(read_fields(ChildManifest, child(message, "submit")))
    if "wait" in message:
        ref = read_fields(ChildRef, child(message, "wait"))
        return WaitRequest(ref, opt_number(message, "timeout"))
    if "step" in message:
        return _read_step_request(child(message, "step"))
    if "file" in message:
        return FileRequest(text(message, "file"), _read_bounds(message.get("part")))
    if "results" in message:
        return _read_result_request(message)
    return ListRequest()


def _read_result_request(message: JsonObject) -> ResultRequest:
    match message.get("at"):
        case [str(folder), str(name)]:
            data = read_part(message.get("data"))
            return ResultRequest(text(message, "results"), folder, name, data)
        case _:
            raise FrameError("results without a folder and a name")


def _read_bounds(part: Json) -> tuple[int, int] | None:
    match part:
        case None:
            return None
        case [int(start), int(end)]:
            return start, end
        case _:
            raise FrameError("a part of a file that is not two numbers")


def _read_step_request(step: JsonObject) -> StepRequest:
    request = read_fields(StepRequest, step)
    try:
        return replace(request, verb=StepVerb(request.verb))
    except ValueError as unknown:
        raise FrameError(f"a request about a step of an unknown kind: {unknown}") from None


def forget_message(number: int) -> JsonObject:
    """Return the message that cancels a request."""
    return {"is": MessageType.FORGET, "number": number}


def answer_message(number: int, value: Json) -> JsonObject:
    """Return the message that answers; see `answer_value`."""
    return {"is": MessageType.ANSWER, "number": number, "value": value}


def error_message(number: int, error: BaseException) -> JsonObject:
    """Return the message that answers with an error."""
    return {"is": MessageType.ANSWER, "number": number, "error": error_to_json(error)}


def read_number(message: JsonObject) -> int:
    """Return the number of the request that a message is about."""
    return integer(message, "number")


def answer_value(value: ChildRef | ChildView | Sequence[ChildView]) -> Json:
    """Return an answer as JSON."""
    if isinstance(value, ChildRef):
        return shallow_dict(value)
    return view_to_json(value) if isinstance(value, ChildView) else list(map(view_to_json, value))


def read_ref(value: Json) -> ChildRef:
    """Read the answer to a SubmitRequest."""
    return read_fields(ChildRef, as_object(value))


def read_view(value: Json) -> ChildView:
    """Read the answer to a WaitRequest."""
    return with_its_types(read_fields(ChildView, as_object(value)))


def read_views(value: Json) -> Sequence[ChildView]:
    """Read the answer to a ListRequest."""
    return [read_view(view) for view in items({"all": value}, "all")]


def file_answer(answer: ObjectStat | bytes) -> Json:
    """Return the answer to a FileRequest as JSON."""
    return _as_base64(answer) if isinstance(answer, bytes) else shallow_dict(answer)


def _as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_stat(value: Json) -> ObjectStat:
    """Read the answer to a FileRequest without a part."""
    return read_fields(ObjectStat, as_object(value))


def read_part(value: Json) -> bytes:
    """Read the answer to a FileRequest for a part."""
    return base64.b64decode(value) if isinstance(value, str) else b""
