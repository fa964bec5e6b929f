"""What handlers share, such as a connection pool.

How it is declared, and in which order it is opened.

Knows nothing of workers: a test or a handler process opens the same resources with other values.
"""

import collections.abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar, get_args, get_origin

from asyncjob.app.inspection import (
    HandlerError,
    InspectedFunction,
    ResourceNeed,
    ResourceNeeds,
    type_name,
)

T = TypeVar("T")

_ITERATOR_TYPES: tuple[Any, ...] = (
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Iterable,
)


class ResourceKind(Enum):
    """How a resource is made."""

    ASYNC_GENERATOR = auto()
    GENERATOR = auto()
    ASYNC = auto()
    PLAIN = auto()


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A declared resource: handlers ask for it by `type`."""

    type: Any
    kind: ResourceKind
    function: Callable[..., Any]
    needs: ResourceNeeds
    label: str


ResourceDefinitions = Mapping[Any, ResourceDefinition]
"""Resources by the type that handlers ask for."""


def inspect_resource(function: Callable[..., Any]) -> ResourceDefinition:
    """Inspect what makes a resource; raises HandlerError that says what is wrong with it."""
    inspected = InspectedFunction("resource", function)
    kind, needs = _resource_kind(inspected), inspected.needs
    if inspected.positional:
        first = inspected.positional[0].name
        inspected.refuse(f"parameter {first!r} has to be keyword-only: write `*` before it")
    return ResourceDefinition(
        _provided_type(inspected, kind), kind, function, needs, inspected.label
    )


def _resource_kind(inspected: InspectedFunction) -> ResourceKind:
    if inspected.is_async_generator:
        return ResourceKind.ASYNC_GENERATOR
    if inspected.is_generator:
        return ResourceKind.GENERATOR
    return ResourceKind.ASYNC if inspected.is_async else ResourceKind.PLAIN


def _provided_type(inspected: InspectedFunction, kind: ResourceKind) -> Any:
    """Return the type that handlers ask for: what it returns, or yields."""
    provided = inspected.hints.get("return")
    if provided is None or provided is type(None) or provided is Any:
        inspected.refuse("it has to say the type of what it gives: handlers ask for it by that")
    if kind in {ResourceKind.ASYNC, ResourceKind.PLAIN}:
        return provided
    if get_origin(provided) not in _ITERATOR_TYPES or not get_args(provided):
        wanted = "AsyncIterator" if kind is ResourceKind.ASYNC_GENERATOR else "Iterator"
        inspected.refuse(f"it yields: its return type is {wanted}[...], not {provided!r}")
    return get_args(provided)[0]


def in_dependency_order(
    declared: ResourceDefinitions, given: Mapping[Any, object], wanted: Iterable[Any]
) -> Sequence[ResourceDefinition]:
    """Return the resources to open for the wanted types, each after those that it needs.

    What is `given` is there already. Raises HandlerError for a cycle and for what is missing.
    """
    order = _TopologicalSort(declared, given)
    for kind in wanted:
        order.add(kind)
    return order.sorted


def check_needs(
    declared: ResourceDefinitions, given: Mapping[Any, object], needs: Iterable[ResourceNeed]
) -> None:
    """Raise HandlerError for the first need that nothing meets."""
    for need in needs:
        if need.optional or need.type in declared or need.type in given:
            continue
        known = ", ".join(sorted({type_name(kind) for kind in [*declared, *given]})) or "none"
        raise HandlerError(
            f"{need.label}: no resource of type {type_name(need.type)}; declare one with "
            f"@app.resource (there are: {known})"
        )


class _TopologicalSort:
    """Sorts by need: depth first, so that the way into a cycle is known."""

    def __init__(self, declared: ResourceDefinitions, given: Mapping[Any, object]) -> None:
        self._declared = declared
        self._given = given
        self._path: list[Any] = []
        self._done: set[Any] = set()
        self.sorted: list[ResourceDefinition] = []

    def add(self, kind: Any) -> None:
        """Take in a type, after all that it needs."""
        if kind in self._given or kind in self._done or kind not in self._declared:
            return
        if kind in self._path:
            circle = [*self._path[self._path.index(kind) :], kind]
            names = " → ".join(type_name(one) for one in circle)
            raise HandlerError(f"{self._declared[kind].label}: resources need each other: {names}")
        self._path.append(kind)
        self._add_needs(self._declared[kind])
        self._path.pop()
        self._done.add(kind)
        self.sorted.append(self._declared[kind])

    def _add_needs(self, resource: ResourceDefinition) -> None:
        check_needs(self._declared, self._given, resource.needs.values())
        for need in resource.needs.values():
            self.add(need.type)


class Resources:
    """Open resources by type."""

    def __init__(self, contents: Mapping[Any, object]) -> None:
        self._values_by_type = contents

    def get(self, kind: type[T]) -> T:
        """Return the resource of a type; raises HandlerError if there is none."""
        if kind not in self._values_by_type:
            raise HandlerError(f"no resource of type {type_name(kind)} is open")
        found: Any = self._values_by_type[kind]
        return found  # type: ignore[no-any-return]  # by its own declaration

    def arguments(self, needs: ResourceNeeds) -> dict[str, object]:
        """Return the keyword arguments for a function; raises HandlerError if one is missing."""
        check_needs({}, self._values_by_type, needs.values())
        return {
            name: self._values_by_type[need.type]
            for name, need in needs.items()
            if need.type in self._values_by_type
        }


NO_RESOURCES = Resources({})
