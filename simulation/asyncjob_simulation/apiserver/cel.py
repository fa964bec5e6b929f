"""Rules in CEL, compiled once and evaluated by Google's own runtime.

Everything is dynamically typed here, while a real API server knows the types from the schema. The
expressions have passed its type check when they were installed; what is left of the difference is
the times. It takes strings with `format: date-time` for timestamps, and here they are given as text
in UTC with nine digits (`canonical_time`), which compares as the timestamps do.

Of the costs that a real API server counts nothing is known here. The runtime gives up after 10,000
iterations in one expression, which an array of 100 open chunks needs, and a real API server grants.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional

from asyncjob_simulation.apiserver.errors import PolicyError

Question = Mapping[str, str]
Authorize = Callable[[Question], bool]

_NAMES: Final = ("object", "oldObject", "request", "namespaceObject", "params", "self", "oldSelf")
_STEPS: Final = ("group", "resource", "subresource", "namespace", "name", "check")
_FRACTION: Final = re.compile(r"\.([0-9]{1,9})")
_AUTHORIZE: Final[ContextVar[Authorize]] = ContextVar("authorize")


def _append(step: str) -> Callable[[str, str], str]:
    return lambda question, value: f"{question}\n{step}={value}"


def _allowed(question: str) -> bool:
    lines = question.split("\n")[1:]
    return _AUTHORIZE.get()(dict(line.split("=", 1) for line in lines))


def _sum(values: Sequence[int]) -> int:
    return sum(values)


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator)


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


def _is_sorted(values: Sequence[int]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _library_functions() -> list[cel.FunctionDecl]:
    """Return what the API server adds to CEL and the rules use."""
    text, values = cel.Type.STRING, cel.Type.List(cel.Type.DYN)
    return [
        _method("sum", cel.Type.INT, [values], _sum),
        _method("split", cel.Type.List(text), [text, text], _split),
        _method("replace", text, [text, text, text], _replace),
        _method("isSorted", cel.Type.BOOL, [values], _is_sorted),
    ]


def _method(
    name: str, returns: cel.Type, parameters: list[cel.Type], do: Callable[..., object]
) -> cel.FunctionDecl:
    """Return a function that is called on its first parameter."""
    overload = cel.Overload(
        id=f"added_{name}", return_type=returns, parameters=parameters, is_member=True, impl=do
    )
    return cel.FunctionDecl(name, [overload])


def _environment() -> cel.Env:
    """Return the environment; `authorizer` is a question that grows by the calls upon it."""
    text, answer = cel.Type.STRING, cel.Type.BOOL
    functions = [
        cel.FunctionDecl(
            step,
            [
                cel.Overload(
                    id=f"authorizer_{step}",
                    return_type=text,
                    parameters=[text, text],
                    is_member=True,
                    impl=_append(step),
                )
            ],
        )
        for step in _STEPS
    ]
    allowed = cel.Overload(
        id="authorizer_allowed",
        return_type=answer,
        parameters=[text],
        is_member=True,
        impl=_allowed,
    )
    return cel.NewEnv(
        variables={**dict.fromkeys(_NAMES, cel.Type.DYN), "authorizer": text},
        extensions=[ext_optional.ExtOptional()],
        functions=[*functions, cel.FunctionDecl("allowed", [allowed]), *_library_functions()],
    )


_ENVIRONMENT: Final = _environment()


@contextmanager
def authorizer(authorize: Authorize) -> Iterator[None]:
    """Answer what expressions ask of `authorizer` by this function."""
    token = _AUTHORIZE.set(authorize)
    try:
        yield
    finally:
        _AUTHORIZE.reset(token)


class EvaluationError(Exception):
    """An expression has no value: a field that is not there, a wrong type."""


class Activation:
    """Values of the variables; they are made ready for the runtime once for all expressions."""

    __slots__ = ("_activation",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._activation = _ENVIRONMENT.Activation({"authorizer": "", **values})

    def evaluate(self, expression: cel.Expression) -> Any:
        """Return the value; raises EvaluationError."""
        try:
            value = expression.eval(self._activation)
        except RuntimeError as error:
            raise EvaluationError(str(error)) from error
        if value.type() == cel.Type.ERROR:
            raise EvaluationError(str(value.plain_value()))
        return value.plain_value()


@lru_cache(maxsize=4096)
def compiled(expression: str) -> cel.Expression:
    """Compile an expression, or return what was compiled before; raises PolicyError."""
    try:
        return _ENVIRONMENT.compile(expression)
    except Exception as error:  # the runtime has no type of its own
        raise PolicyError(f"CEL does not compile: {error}") from error


@lru_cache(maxsize=4096)
def canonical_time(text: str) -> str:
    """Return a time as text in UTC that compares and sorts as the time does."""
    try:
        whole, digits, offset = _divided(text)
        moment = datetime.fromisoformat(f"{whole}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{digits:0<9}Z"


def _divided(text: str) -> tuple[str, str, str]:
    """Return whole seconds, digits below them, and the offset."""
    whole, rest = text[:19], text[19:]
    found = _FRACTION.match(rest)
    digits = found.group(1) if found else ""
    offset = rest[len(digits) + 1 :] if digits else rest
    return whole, digits, "+00:00" if offset in {"Z", "z"} else offset
