"""The app: a registry of handlers, and what belongs to all of them."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from asyncjob.app.categories import MAX_LENGTH, is_category
from asyncjob.app.handler import Function, Handler, HandlerError, build
from asyncjob.lifecycle.policy import PolicyLayer, layer_of
from asyncjob.models.base import TYPE_PATTERN
from asyncjob.models.retry_policy import RetryPolicy

F = TypeVar("F", bound=Function)

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

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by job type."""
        return MappingProxyType(self._handlers)

    @property
    def categories(self) -> Mapping[type[BaseException], str]:
        """The app's own error categories by exception type."""
        return MappingProxyType(self._categories)

    def handler(
        self,
        type_: str,
        *,
        timeout: int | None = None,
        retry: RetryPolicy | None = None,
        isolation: Literal["process"] | None = None,
        memory_mib: int | None = None,
    ) -> Callable[[F], F]:
        """Register a function for a job type.

        `timeout` in seconds and `retry` apply where neither the job nor its queue says otherwise.
        `isolation="process"` runs it in a process of its own, which can be killed and whose death
        is a crash of that attempt only; `memory_mib` limits what that process may allocate.
        Raises HandlerError on a bad or repeated type, a signature or an option that does not fit.
        """

        def register(function: F) -> F:
            self._check_type(type_)
            self._handlers[type_] = build(
                type_,
                function,
                _layer(timeout, retry),
                isolation=isolation,
                memory_mib=memory_mib,
            )
            return function

        return register

    def categorize(self, kind: type[BaseException], category: str) -> None:
        """Give errors of a type, subclasses included, a category.

        Raises HandlerError if the category cannot be stored.
        """
        if not is_category(category):
            raise HandlerError(f"{category!r} is no category: 1 to {MAX_LENGTH} characters")
        self._categories[kind] = category

    def include(self, other: "WorkerApp") -> None:
        """Take over the handlers and categories of another app; raises HandlerError on a clash."""
        for type_, handler in other.handlers.items():
            self._check_type(type_)
            self._handlers[type_] = handler
        self._categories.update(other.categories)

    def _check_type(self, type_: str) -> None:
        if len(type_) > _MAX_TYPE_LENGTH or not re.match(TYPE_PATTERN, type_):
            raise HandlerError(
                f"{type_!r} is no job type: letters, digits, '.', '_', '/' and '-' are allowed, "
                f"at most {_MAX_TYPE_LENGTH}, and it begins and ends with a letter or digit"
            )
        if type_ in self._handlers:
            raise HandlerError(f"two handlers for job type {type_!r}")


def _layer(timeout: int | None, retry: RetryPolicy | None) -> PolicyLayer:
    source: dict[str, object] = {}
    if timeout is not None:
        source["executionTimeoutSeconds"] = timeout
    if retry is not None:
        source["retryPolicy"] = retry.model_dump(mode="json", by_alias=True, exclude_none=True)
    return layer_of(source)  # type: ignore[arg-type]  # a pydantic dump is plain JSON
