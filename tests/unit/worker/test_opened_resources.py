"""Which resources a worker opens itself."""

from typing import Any, NewType

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app import CallNext, Event, WorkerEvent
from asyncjob_worker.worker import resource_types_to_open

Base = NewType("Base", str)
Inside = NewType("Inside", str)
Both = NewType("Both", str)
Unused = NewType("Unused", str)
Around = NewType("Around", str)


@pytest.fixture
def app() -> WorkerApp:
    app = WorkerApp()

    @app.resource
    def inside(*, base: Base) -> Inside:
        return Inside(base)

    @app.resource
    def both(*, base: Base) -> Both:
        return Both(base)

    @app.resource
    def base() -> Base:
        return Base("")

    @app.resource
    def around() -> Around:
        return Around("")

    @app.resource
    def unused() -> Unused:
        return Unused("")

    @app.handler("isolated", isolation="process")
    def isolated(job: JobContext, *, inside: Inside, both: Both, around: Around) -> None: ...

    return app


def test_what_only_isolated_handlers_need_is_not_opened_and_what_nobody_needs_is(
    app: WorkerApp,
) -> None:
    assert resource_types_to_open(app) == [Unused]


def test_what_others_need_too_is_opened_with_all_that_it_needs(app: WorkerApp) -> None:
    @app.handler("shared")
    def shared(job: JobContext, *, both: Both) -> None: ...

    assert resource_types_to_open(app) == [Both, Base, Unused]


def test_what_is_around_an_isolated_handler_needs_it_here(app: WorkerApp) -> None:
    @app.middleware
    async def layer(job: JobContext, call_next: CallNext, *, base: Base) -> Any: ...

    @app.on(Event.WORKER_STARTED)
    def told(event: WorkerEvent, *, around: Around) -> None: ...

    assert resource_types_to_open(app) == [Base, Around, Unused]
