"""`WorkerApp`: the registry of handlers, resources, middleware and hooks."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Concatenate, Final, Literal, TypeVar, overload

from asyncjob.app.errors import MAX_CATEGORY_LENGTH, is_valid_category
from asyncjob.app.events import (
    Event,
    Hook,
    JobEnded,
    JobEndedEventType,
    JobEvent,
    JobEventType,
    WorkerEvent,
    WorkerEventType,
    check_events,
    inspect_hook,
)
from asyncjob.app.handler import (
    Handler,
    HandlerError,
    HandlerFunction,
    Middleware,
    build_handler,
    check_concurrency,
    handler_policy,
    inspect_middleware,
)
from asyncjob.app.inspection import ResourceNeed, type_name
from asyncjob.app.item_files import build_index_handler
from asyncjob.app.items import build_item_handler
from asyncjob.app.resources import (
    ResourceDefinition,
    check_needs,
    in_dependency_order,
    inspect_resource,
)
from asyncjob.lifecycle.arrays.chunks import (
    ARRAY_TYPE_SUFFIXES,
    STORE_TYPE_SUFFIX,
    is_chunk_type,
)
from asyncjob.models.base import TYPE_PATTERN, RetryPolicy

F = TypeVar("F", bound=HandlerFunction)
EndHook = TypeVar("EndHook", bound=Callable[Concatenate[JobEnded, ...], object])
JobHook = TypeVar("JobHook", bound=Callable[Concatenate[JobEvent, ...], object])
WorkerHook = TypeVar("WorkerHook", bound=Callable[Concatenate[WorkerEvent, ...], object])

NO_RESOURCES_GIVEN: Final[Mapping[Any, object]] = MappingProxyType({})

_MAX_TYPE_LENGTH: Final = 128


class WorkerApp:
    """Handlers by job type.

    >>> app = WorkerApp()
    >>> @app.handler("greet", timeout=30)
    ... async def greet(job: JobContext, name: str) -> str:
    ...     return f"Hello {name}"
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._categories: dict[type[BaseException], str] = {}
        self._resources: dict[Any, ResourceDefinition] = {}
        self._middleware: list[Middleware] = []
        self._hooks: list[Hook] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by job type."""
        return MappingProxyType(self._handlers)

    @property
    def categories(self) -> Mapping[type[BaseException], str]:
        """The app's own error categories by exception type."""
        return MappingProxyType(self._categories)

    @property
    def resources(self) -> Mapping[Any, ResourceDefinition]:
        """The declared resources by the type that handlers ask for."""
        return MappingProxyType(self._resources)

    @property
    def hooks(self) -> Sequence[Hook]:
        """The hooks, in order of registration."""
        return tuple(self._hooks)

    def middleware_of(self, handler: Handler) -> Sequence[Middleware]:
        """Return what wraps a handler, the outermost first."""
        return (*self._middleware, *handler.middleware)

    def handler(
        self,
        type_: str,
        *,
        timeout: int | None = None,
        retry: RetryPolicy | None = None,
        lease: int | None = None,
        concurrency: int | None = None,
        isolation: Literal["process"] | None = None,
        memory_mib: int | None = None,
    ) -> Callable[[F], F]:
        """Register a function for a job type.

        `timeout` and `lease` in seconds and `retry` apply where neither the job nor its queue says
        otherwise. At most `concurrency` jobs of the type run at a time in one worker process.
        `isolation="process"` runs it in a process of its own, which can be killed and whose death
        is a crash of that attempt only; `memory_mib` limits what that process may allocate.
        Raises HandlerError on a bad or repeated type, a value out of bounds, and a signature or an
        option that does not fit.
        """
        self._check_type(type_)
        if is_chunk_type(type_):
            raise HandlerError(
                f"{type_!r} is the type of an array's chunks: use @app.item_handler"
                f"({type_.rpartition('/')[0]!r})"
            )

        def register(function: F) -> F:
            self._check_type(type_)
            policy = handler_policy(type_, timeout=timeout, retry=retry, lease=lease)
            check_concurrency(type_, concurrency)
            self._handlers[type_] = build_handler(
                type_,
                function,
                policy,
                isolation=isolation,
                memory_mib=memory_mib,
                concurrency=concurrency,
            )
            return function

        return register

    def item_handler(
        self,
        type_: str,
        *,
        concurrency: int = 1,
        timeout: int | None = None,
        retry: RetryPolicy | None = None,
        lease: int | None = None,
        isolation: Literal["process"] | None = None,
        memory_mib: int | None = None,
    ) -> Callable[[F], F]:
        """Register a function for the items of arrays of a type: `(job: ItemContext, item)`.

        At most `concurrency` items of a chunk are run at a time. `timeout` and `lease` are those of
        a chunk, in seconds; `retry` is for chunks, and its delays and categories are for items as
        well. These apply where neither the array nor its queue says otherwise.
        `isolation="process"` runs each chunk in a process of its own, all its items in there;
        `memory_mib` limits what that process may allocate. Raises HandlerError as `handler` does.
        """
        self._check_item_type(type_)

        def register(function: F) -> F:
            self._check_item_type(type_)
            policy = handler_policy(type_, timeout=timeout, retry=retry, lease=lease)
            handler = build_item_handler(
                type_,
                function,
                policy,
                self.categories,
                concurrency=concurrency,
                isolation=isolation,
                memory_mib=memory_mib,
            )
            kept = replace(handler, type=type_ + STORE_TYPE_SUFFIX)
            index = build_index_handler(type_, policy)
            self._handlers |= {one.type: one for one in (handler, kept, index)}
            return function

        return register

    def resource(self, function: F) -> F:
        """Declare what handlers share: they take it by a keyword-only parameter of its type.

        The function is an async or plain generator that yields it once and then closes it, or an
        async or plain function that returns it. Raises HandlerError if its type is unclear or
        declared already.
        """
        self._add_resource(inspect_resource(function))
        return function

    def middleware(self, function: F) -> F:
        """Wrap the runs of this app's handlers: `async def timing(job, call_next) -> Any`.

        The first registered is the outermost. It gives a result, `await call_next()` or another,
        and may raise what a handler may. Raises HandlerError on a signature that does not fit.
        """
        self._middleware.append(inspect_middleware(function))
        return function

    @overload
    def on(self, *events: JobEndedEventType) -> Callable[[EndHook], EndHook]: ...
    @overload
    def on(self, *events: JobEventType) -> Callable[[JobHook], JobHook]: ...
    @overload
    def on(self, *events: WorkerEventType) -> Callable[[WorkerHook], WorkerHook]: ...

    def on(self, *events: Event) -> Callable[[F], F]:
        """Have a function told of lifecycle events, after the fact: `def told(event) -> None`.

        Sync or async; resources by keyword. What it raises is logged and changes nothing. Raises
        HandlerError on a signature that does not fit.
        """
        told_of = check_events(events)

        def register(function: F) -> F:
            self._hooks.append(inspect_hook(told_of, function))
            return function

        return register

    def categorize(self, kind: type[BaseException], category: str) -> None:
        """Give errors of a type, subclasses included, a category.

        Raises HandlerError if the category cannot be stored.
        """
        if not is_valid_category(category):
            raise HandlerError(
                f"{category!r} is not a category: 1 to {MAX_CATEGORY_LENGTH} characters"
            )
        self._categories[kind] = category

    def include(self, other: "WorkerApp") -> None:
        """Take over all that another app has registered; raises HandlerError on a clash.

        Its middleware and its hooks go on to concern its own handlers only.
        """
        for type_, handler in other.handlers.items():
            self._check_type(type_)
            around = tuple(other.middleware_of(handler))
            self._handlers[type_] = replace(handler, middleware=around)
        self._categories.update(other.categories)
        for resource in other.resources.values():
            self._add_resource(resource)
        own = frozenset(other.handlers)
        for hook in other.hooks:
            self._hooks.append(hook if hook.types is not None else replace(hook, types=own))

    def check(self, given: Mapping[Any, object] = NO_RESOURCES_GIVEN) -> None:
        """Raise HandlerError if a type or resource is missing, or if some need each other.

        `given` are resources from elsewhere, by type.
        """
        for handler in self._handlers.values():
            handler.check_types()
        in_dependency_order(self._resources, given, self._resources)
        check_needs(self._resources, given, self._needs())

    def needed_types(self) -> AbstractSet[Any]:
        """Return the types of all resources that something here takes."""
        made = (need for one in self._resources.values() for need in one.needs.values())
        return {need.type for need in (*self._needs(), *made)}

    def _needs(self) -> Iterator[ResourceNeed]:
        for handler in self._handlers.values():
            for layer in handler.middleware:
                yield from layer.needs.values()
            yield from handler.needs.values()
        yield from (need for one in self._middleware for need in one.needs.values())
        yield from (need for one in self._hooks for need in one.needs.values())

    def _add_resource(self, resource: ResourceDefinition) -> None:
        known = self._resources.get(resource.type)
        if known == resource:
            return
        if known is not None:
            raise HandlerError(
                f"{resource.label}: {known.label} gives {type_name(resource.type)} already; tell "
                "two of "
                'a type apart by Annotated[..., "name"] or NewType'
            )
        self._resources[resource.type] = resource

    def _check_item_type(self, type_: object) -> None:
        """Check all types that an item handler has; what is no text is left for the check."""
        for suffix in ARRAY_TYPE_SUFFIXES:
            self._check_type(type_ + suffix if isinstance(type_, str) else type_)

    def _check_type(self, type_: object) -> None:
        if not isinstance(type_, str):
            example = getattr(type_, "__name__", "type")
            raise HandlerError(
                f'a handler needs the type of its jobs: @app.handler("{example}"), not {type_!r}'
            )
        if len(type_) > _MAX_TYPE_LENGTH or not re.fullmatch(TYPE_PATTERN, type_):
            raise HandlerError(
                f"{type_!r} is not a job type: letters, digits, '.', '_', '/' and '-' are allowed, "
                f"at most {_MAX_TYPE_LENGTH}, and it begins and ends with a letter or digit"
            )
        if type_ in self._handlers:
            raise HandlerError(f"two handlers for job type {type_!r}")
