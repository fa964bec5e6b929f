"""Which resources this process opens: not those that only handlers in processes of their own take.

Each of these opens its own. Whether all are declared is not decided here.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from asyncjob.app import Isolation, WorkerApp
from asyncjob.app.inspection import ResourceNeeds
from asyncjob.app.resources import in_dependency_order


def resource_types_to_open(app: WorkerApp) -> Sequence[Any]:
    """Return the types to open, as declared; raises HandlerError where resources need each other.

    One that nobody takes is opened, too: it may be there for what its opening does.
    """
    elsewhere = _with_dependencies(app, _types_of(_needs_in_processes(app)))
    roots = [kind for kind in app.resources if kind not in elsewhere]
    here = _with_dependencies(app, [*roots, *_types_of(_needs_here(app))])
    return [kind for kind in app.resources if kind in here]


def _with_dependencies(app: WorkerApp, wanted: Iterable[Any]) -> AbstractSet[Any]:
    """Return the types of what is wanted, and of what that needs."""
    return {one.type for one in in_dependency_order(app.resources, {}, wanted)}


def _types_of(functions: Iterable[ResourceNeeds]) -> Iterable[Any]:
    return [need.type for needs in functions for need in needs.values()]


def _needs_in_processes(app: WorkerApp) -> Iterator[ResourceNeeds]:
    for handler in app.handlers.values():
        if handler.isolation is Isolation.PROCESS:
            yield handler.needs


def _needs_here(app: WorkerApp) -> Iterator[ResourceNeeds]:
    for handler in app.handlers.values():
        yield from (layer.needs for layer in app.middleware_of(handler))
        if handler.isolation is not Isolation.PROCESS:
            yield handler.needs
    yield from (hook.needs for hook in app.hooks)
