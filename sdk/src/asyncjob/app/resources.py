"""What handlers share, such as a pool of connections: how it is declared, and in which order.

Knows nothing of workers: a test or a child process opens the same resources, with other contents.
"""

import collections.abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar, get_args, get_origin

from asyncjob.app.inspection import HandlerError, Inspected, Need, Needs, name_of

T = TypeVar("T")

_YIELDING: tuple[Any, ...] = (
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Iterable,
)


class Kind(Enum):
    """How a resource is made."""

    ASYNC_GENERATOR = auto()
    GENERATOR = auto()
    ASYNC = auto()
    PLAIN = auto()


@dataclass(frozen=True, slots=True)
class Resource:
    """A declared resource: handlers ask for it by `type`."""

    type: Any
    kind: Kind
    function: Callable[..., Any]
    needs: Needs
    who: str


Declared = Mapping[Any, Resource]
"""Resources by the type that handlers ask for."""


def read_resource(function: Callable[..., Any]) -> Resource:
    """Inspect what makes a resource; raises HandlerError that says what is wrong with it."""
    inspected = Inspected("resource", function)
    kind, needs = _kind(inspected), inspected.needs
    if inspected.positional:
        first = inspected.positional[0].name
        inspected.refuse(f"parameter {first!r} has to be keyword-only: write `*` before it")
    return Resource(_provided(inspected, kind), kind, function, needs, inspected.who)


def _kind(inspected: Inspected) -> Kind:
    if inspected.is_async_generator:
        return Kind.ASYNC_GENERATOR
    if inspected.is_generator:
        return Kind.GENERATOR
    return Kind.ASYNC if inspected.is_async else Kind.PLAIN


def _provided(inspected: Inspected, kind: Kind) -> Any:
    """Return the type that handlers ask for: what it returns, or yields."""
    provided = inspected.hints.get("return")
    if provided is None or provided is type(None) or provided is Any:
        inspected.refuse("it has to say the type of what it gives: handlers ask for it by that")
    if kind in {Kind.ASYNC, Kind.PLAIN}:
        return provided
    if get_origin(provided) not in _YIELDING or not get_args(provided):
        wanted = "AsyncIterator" if kind is Kind.ASYNC_GENERATOR else "Iterator"
        inspected.refuse(f"it yields: its return type is {wanted}[...], not {provided!r}")
    return get_args(provided)[0]


def in_order(
    declared: Declared, given: Mapping[Any, object], wanted: Iterable[Any]
) -> Sequence[Resource]:
    """Return the resources to open for the wanted types, each after those that it needs.

    What is `given` is there already. Raises HandlerError for a cycle and for what is missing.
    """
    order = _Order(declared, given)
    for kind in wanted:
        order.add(kind)
    return order.sorted


def check_needs(declared: Declared, given: Mapping[Any, object], needs: Iterable[Need]) -> None:
    """Raise HandlerError for the first need that nothing meets."""
    for need in needs:
        if need.optional or need.type in declared or need.type in given:
            continue
        known = ", ".join(sorted({name_of(kind) for kind in [*declared, *given]})) or "none"
        raise HandlerError(
            f"{need.who}: no resource of type {name_of(need.type)}; declare one with "
            f"@app.resource (there are: {known})"
        )


class _Order:
    """Sorts by need: depth first, so that the way into a cycle is known."""

    def __init__(self, declared: Declared, given: Mapping[Any, object]) -> None:
        self._declared = declared
        self._given = given
        self._way: list[Any] = []
        self._done: set[Any] = set()
        self.sorted: list[Resource] = []

    def add(self, kind: Any) -> None:
        """Take in a type, after all that it needs."""
        if kind in self._given or kind in self._done or kind not in self._declared:
            return
        if kind in self._way:
            circle = [*self._way[self._way.index(kind) :], kind]
            names = " → ".join(name_of(one) for one in circle)
            raise HandlerError(f"{self._declared[kind].who}: resources need each other: {names}")
        self._way.append(kind)
        self._add_needs(self._declared[kind])
        self._way.pop()
        self._done.add(kind)
        self.sorted.append(self._declared[kind])

    def _add_needs(self, resource: Resource) -> None:
        check_needs(self._declared, self._given, resource.needs.values())
        for need in resource.needs.values():
            self.add(need.type)


class Resources:
    """Open resources by type."""

    def __init__(self, contents: Mapping[Any, object]) -> None:
        self._contents = contents

    def get(self, kind: type[T]) -> T:
        """Return the resource of a type; raises HandlerError if there is none."""
        if kind not in self._contents:
            raise HandlerError(f"no resource of type {name_of(kind)} is open")
        found: Any = self._contents[kind]
        return found  # type: ignore[no-any-return]  # by its own declaration

    def arguments(self, needs: Needs) -> dict[str, object]:
        """Return the keyword arguments for a function; raises HandlerError if one is missing."""
        check_needs({}, self._contents, needs.values())
        return {
            name: self._contents[need.type]
            for name, need in needs.items()
            if need.type in self._contents
        }


NO_RESOURCES = Resources({})
