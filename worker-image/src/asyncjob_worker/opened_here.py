"""Which resources this process opens: not those that only handlers in processes of their own take.

Each of these opens its own. Whether all are declared is not decided here.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from asyncjob.app import Isolation, WorkerApp
from asyncjob.app.inspection import Needs
from asyncjob.app.resources import in_order


def types_opened_here(app: WorkerApp) -> Sequence[Any]:
    """Return the types to open, as declared; raises HandlerError where resources need each other.

    One that nobody takes is opened, too: it may be there for what its opening does.
    """
    elsewhere = _closure(app, _types(_isolated(app)))
    roots = [kind for kind in app.resources if kind not in elsewhere]
    here = _closure(app, [*roots, *_types(_shared(app))])
    return [kind for kind in app.resources if kind in here]


def _closure(app: WorkerApp, wanted: Iterable[Any]) -> AbstractSet[Any]:
    """Return the types of what is wanted, and of what that needs."""
    return {one.type for one in in_order(app.resources, {}, wanted)}


def _types(functions: Iterable[Needs]) -> Iterable[Any]:
    return [need.type for needs in functions for need in needs.values()]


def _isolated(app: WorkerApp) -> Iterator[Needs]:
    for handler in app.handlers.values():
        if handler.isolation is Isolation.PROCESS:
            yield handler.needs


def _shared(app: WorkerApp) -> Iterator[Needs]:
    for handler in app.handlers.values():
        yield from (layer.needs for layer in app.middleware_of(handler))
        if handler.isolation is not Isolation.PROCESS:
            yield handler.needs
    yield from (hook.needs for hook in app.hooks)
