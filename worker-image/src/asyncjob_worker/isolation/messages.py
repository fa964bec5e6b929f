"""What the worker and a child tell each other, and its form as JSON.

Worker to child: begin (once), run, stop, taken (a report was), answer, end.
Child to worker: ready or unable (once), report, ask, forget, done or failed.
"""

from dataclasses import Field, asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol, TypeVar

from asyncjob.app import JobInfo, JobParent
from asyncjob.app.error_report import ErrorKind, ErrorReport
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.move import truncate
from asyncjob.lifecycle.outcome import MAX_ERROR_MESSAGE_LENGTH


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Dataclass)


class MessageType(StrEnum):
    """What a message is."""

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
    """What a child has to know of its worker. `path` is where modules are looked for."""

    app: str
    path: list[str]
    log_format: str = "text"
    max_free_json: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One job. `ends_at` is its time limit in seconds of the lease clock."""

    info: JobInfo
    payload: Json
    ends_at: float
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """What a child holds in memory, in bytes. `spent` ones are not to be used again.

    `at_first` is what it held before all jobs: the app, and the resources since opened.
    """

    memory: int = 0
    at_first: int = 0
    spent: bool = False


STOP_MESSAGE: Final[JsonObject] = {"is": MessageType.STOP}
TAKEN_MESSAGE: Final[JsonObject] = {"is": MessageType.TAKEN}
END_MESSAGE: Final[JsonObject] = {"is": MessageType.END}


def message_type(message: JsonObject) -> str:
    """Return what a message is."""
    return text(message, "is")


def begin_message(config: ProcessConfig) -> JsonObject:
    """Return the first message to a child."""
    return {"is": MessageType.BEGIN, **asdict(config)}


def read_begin(message: JsonObject) -> ProcessConfig:
    """Read the first message to a child."""
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
    """Return the message of a child that has loaded its app."""
    return {"is": MessageType.READY, **asdict(usage)}


def unable_message(why: str) -> JsonObject:
    """Return the message of a child that cannot load its app."""
    return {"is": MessageType.UNABLE, "why": why}


def done_message(result: Json, usage: MemoryUsage) -> JsonObject:
    """Return the message of a handler that has returned."""
    return {"is": MessageType.DONE, "result": result, **asdict(usage)}


def failed_message(report: ErrorReport, usage: MemoryUsage) -> JsonObject:
    """Return the message of a handler that has raised."""
    error = {**asdict(report), "message": truncate(report.message, MAX_ERROR_MESSAGE_LENGTH)}
    return {"is": MessageType.FAILED, "error": error, **asdict(usage)}


def read_error(message: JsonObject) -> ErrorReport:
    """Read what a handler has raised."""
    error: dict[str, Any] = dict(child(message, "error"))
    return ErrorReport(**{**error, "kind": ErrorKind(error["kind"])})


def read_memory_usage(message: JsonObject) -> MemoryUsage:
    """Read what a child holds."""
    return read_fields(MemoryUsage, message)


def _job_info_fields(info: JobInfo) -> dict[str, Any]:
    return {**shallow_dict(info), "parent": info.parent and shallow_dict(info.parent)}


def shallow_dict(value: Any) -> dict[str, Any]:
    """Return the fields without a deep copy of the free JSON in them."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def read_fields(kind: type[T], message: JsonObject) -> T:
    """Read a dataclass of plain values."""
    known: dict[str, Any] = {name: message[name] for name in kind.__dataclass_fields__}
    return kind(**known)
