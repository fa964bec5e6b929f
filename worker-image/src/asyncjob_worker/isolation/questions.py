"""What a handler in a child asks about its job's children, and the answers, as JSON.

Child to worker: ask (numbered), forget (the answer is not wanted). Worker to child: answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from asyncjob.app.child_order import ChildOrder
from asyncjob.app.child_view import ChildRef, ChildView
from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, opt_number
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.isolation import typed_errors
from asyncjob_worker.isolation.messages import Word, read_fields, shallow


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit a child."""

    order: ChildOrder


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a child to finish, for `timeout` seconds."""

    child: ChildRef
    timeout: float | None


@dataclass(frozen=True, slots=True)
class List:
    """Look at all children."""


Question = Submit | Wait | List


def ask(number: int, question: Question) -> JsonObject:
    """Return the message that asks."""
    message: dict[str, Json] = {"is": Word.ASK, "number": number}
    match question:
        case Submit(order):
            return {**message, "submit": shallow(order)}
        case Wait(ref, timeout):
            return {**message, "wait": shallow(ref), "timeout": timeout}
        case List():
            return message


def read_question(message: JsonObject) -> Question:
    """Read what is asked."""
    if "submit" in message:
        return Submit(read_fields(ChildOrder, child(message, "submit")))
    if "wait" in message:
        ref = read_fields(ChildRef, child(message, "wait"))
        return Wait(ref, opt_number(message, "timeout"))
    return List()


def forget(number: int) -> JsonObject:
    """Return the message that calls a question back."""
    return {"is": Word.FORGET, "number": number}


def answer(number: int, value: Json) -> JsonObject:
    """Return the message that answers; see `plain`."""
    return {"is": Word.ANSWER, "number": number, "value": value}


def failure(number: int, error: BaseException) -> JsonObject:
    """Return the message that answers with an error."""
    return {"is": Word.ANSWER, "number": number, "error": typed_errors.to_json(error)}


def read_number(message: JsonObject) -> int:
    """Return which question a message is about."""
    return integer(message, "number")


def plain(value: ChildRef | ChildView | Sequence[ChildView]) -> Json:
    """Return an answer as JSON."""
    if isinstance(value, ChildRef | ChildView):
        return shallow(value)
    return [shallow(one) for one in value]


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
