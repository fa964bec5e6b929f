"""What a handler in a child asks about its job's children, and the answers, as JSON.

Child to worker: ask (numbered), forget (the answer is not wanted). Worker to child: answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from asyncjob.app.child_order import ChildManifest
from asyncjob.app.child_view import ChildRef, ChildView
from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, opt_number
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.isolation import typed_errors
from asyncjob_worker.isolation.messages import MessageType, read_fields, shallow_dict


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """Submit a child."""

    order: ChildManifest


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """Wait for a child to finish, for `timeout` seconds."""

    child: ChildRef
    timeout: float | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Look at all children."""


ChildJobRequest = SubmitRequest | WaitRequest | ListRequest


def ask_message(number: int, request: ChildJobRequest) -> JsonObject:
    """Return the message that asks."""
    message: dict[str, Json] = {"is": MessageType.ASK, "number": number}
    match request:
        case SubmitRequest(order):
            return {**message, "submit": shallow_dict(order)}
        case WaitRequest(ref, timeout):
            return {**message, "wait": shallow_dict(ref), "timeout": timeout}
        case ListRequest():
            return message


def read_request(message: JsonObject) -> ChildJobRequest:
    """Read what is asked."""
    if "submit" in message:
        return SubmitRequest(read_fields(ChildManifest, child(message, "submit")))
    if "wait" in message:
        ref = read_fields(ChildRef, child(message, "wait"))
        return WaitRequest(ref, opt_number(message, "timeout"))
    return ListRequest()


def forget_message(number: int) -> JsonObject:
    """Return the message that calls a question back."""
    return {"is": MessageType.FORGET, "number": number}


def answer_message(number: int, value: Json) -> JsonObject:
    """Return the message that answers; see `answer_value`."""
    return {"is": MessageType.ANSWER, "number": number, "value": value}


def error_message(number: int, error: BaseException) -> JsonObject:
    """Return the message that answers with an error."""
    return {"is": MessageType.ANSWER, "number": number, "error": typed_errors.error_to_json(error)}


def read_number(message: JsonObject) -> int:
    """Return which question a message is about."""
    return integer(message, "number")


def answer_value(value: ChildRef | ChildView | Sequence[ChildView]) -> Json:
    """Return an answer as JSON."""
    if isinstance(value, ChildRef | ChildView):
        return shallow_dict(value)
    return [shallow_dict(one) for one in value]


def read_ref(value: Json) -> ChildRef:
    """Read the answer to Submit."""
    return read_fields(ChildRef, as_object(value))


def read_view(value: Json) -> ChildView:
    """Read the answer to Wait."""
    view = read_fields(ChildView, as_object(value))
    return replace(view, phase=Phase(view.phase))


def read_views(value: Json) -> Sequence[ChildView]:
    """Read the answer to List."""
    return [read_view(one) for one in items({"all": value}, "all")]
