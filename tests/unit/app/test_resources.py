"""What handlers share: found by type, opened by need, closed in reverse and in time."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NewType

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.app import HandlerError, ResourceError, open_resources
from asyncjob.app.resource_lifecycle import OpenResources


@dataclass
class Url:
    text: str


@dataclass
class Database:
    url: Url


@dataclass
class Cache:
    database: Database


class Steps(list[str]):
    """What happened, in order."""


@pytest.fixture
def steps() -> Steps:
    return Steps()


def an_app(steps: Steps) -> WorkerApp:
    """Return an app with a resource of each kind, declared in no order of need."""
    app = WorkerApp()

    @app.resource
    def cache(*, database: Database) -> Iterator[Cache]:
        steps.append("open cache")
        yield Cache(database)
        steps.append("close cache")

    @app.resource
    async def database(*, url: Url) -> AsyncIterator[Database]:
        steps.append("open database")
        yield Database(url)
        steps.append("close database")

    @app.resource
    async def url() -> Url:
        steps.append("open url")
        return Url("real")

    @app.resource
    def plain() -> float:
        return 1.5

    return app


async def test_they_open_by_need_and_close_in_reverse(steps: Steps) -> None:
    async with open_resources(an_app(steps)) as resources:
        assert resources.get(Cache).database.url.text == "real"
        assert resources.get(float) == 1.5
        steps.append("use")
    opened = ["open url", "open database", "open cache"]
    assert steps == [*opened, "use", "close cache", "close database"]


async def test_an_override_is_used_instead(steps: Steps) -> None:
    fake = Database(Url("fake"))
    async with open_resources(
        an_app(steps), overrides={Database: fake}, types=[Cache]
    ) as resources:
        assert resources.get(Cache).database is fake
    assert steps == ["open cache", "close cache"]


async def test_an_override_that_nobody_needs_is_a_mistake(steps: Steps) -> None:
    with pytest.raises(HandlerError, match="nothing needs a resource of type Steps"):
        async with open_resources(an_app(steps), overrides={Steps: steps}):
            raise AssertionError("opened")


async def test_what_cannot_be_opened_is_one_line_and_the_others_are_closed(steps: Steps) -> None:
    app = an_app(steps)

    @app.resource
    async def broken(*, cache: Cache) -> AsyncIterator[str]:
        if app.resources:
            raise ConnectionRefusedError("no\nroute")
        yield ""

    with pytest.raises(ResourceError) as error:
        async with open_resources(app):
            raise AssertionError("opened")
    assert "broken) cannot be opened: ConnectionRefusedError: no route" in str(error.value)
    assert steps[-2:] == ["close cache", "close database"]


async def test_a_closing_that_fails_is_logged_and_the_others_are_closed(steps: Steps) -> None:
    app = an_app(steps)

    @app.resource
    def broken(*, cache: Cache) -> Iterator[str]:
        yield ""
        raise OSError("gone already")

    with capture_logs() as logs:
        async with open_resources(app):
            pass
    assert [entry["error"] for entry in logs] == ["OSError: gone already"]
    assert steps[-2:] == ["close cache", "close database"]


async def test_a_closing_that_hangs_is_given_up_in_time(steps: Steps) -> None:
    app, never = an_app(steps), threading.Event()

    @app.resource
    async def polite(*, cache: Cache) -> AsyncIterator[str]:
        yield ""
        await asyncio.Event().wait()

    @app.resource
    def stubborn(*, text: str) -> Iterator[bytes]:
        yield b""
        never.wait(30)

    opened = OpenResources(app)
    await opened.open()
    with capture_logs() as logs:
        await opened.close(0.2)
    never.set()
    given_up = [entry["resource"] for entry in logs]
    assert len(given_up) == 2
    assert "stubborn" in given_up[0]
    assert "polite" in given_up[1]
    assert steps[-2:] == ["close cache", "close database"]


async def test_one_that_hangs_leaves_time_for_those_after_it(steps: Steps) -> None:
    app = WorkerApp()

    @app.resource
    async def slow() -> AsyncIterator[str]:
        yield ""
        for _ in range(100):
            await asyncio.sleep(0)
        steps.append("closed")

    @app.resource
    async def hangs(*, text: str) -> AsyncIterator[bytes]:
        yield b""
        await asyncio.Event().wait()

    opened = OpenResources(app)
    await opened.open()
    with capture_logs() as logs:
        await opened.close(0.4)
    assert steps == ["closed"]
    assert len(logs) == 1


async def test_an_opening_that_is_interrupted_closes_what_is_open(steps: Steps) -> None:
    app, waiting = an_app(steps), asyncio.Event()

    @app.resource
    async def slow(*, cache: Cache) -> AsyncIterator[str]:
        waiting.set()
        await asyncio.Event().wait()
        yield ""

    async def live() -> None:
        async with open_resources(app):
            raise AssertionError("opened")

    task = asyncio.ensure_future(live())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps[-2:] == ["close cache", "close database"]


async def test_a_task_group_lives_from_opening_to_closing_in_one_task() -> None:
    app, ended = WorkerApp(), asyncio.Event()

    async def serve() -> None:
        await ended.wait()

    @app.resource
    async def group() -> AsyncIterator[asyncio.TaskGroup]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve())
            yield tasks
            ended.set()

    with capture_logs() as logs:
        async with open_resources(app):
            pass
    assert logs == []


async def test_a_resource_that_ends_while_in_use_is_logged() -> None:
    app, fails = WorkerApp(), asyncio.Event()

    async def fail() -> None:
        await fails.wait()
        raise OSError("lost")

    @app.resource
    async def group() -> AsyncIterator[asyncio.TaskGroup]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            yield tasks

    with capture_logs() as logs:
        async with open_resources(app):
            fails.set()
            for _ in range(10):
                await asyncio.sleep(0)
    assert [entry["event"] for entry in logs] == [
        "resource has ended while in use",
        "resource failed",
    ]
    assert [entry["error"] for entry in logs] == ["OSError: lost"] * 2


def test_a_missing_resource_names_who_needs_it_and_what_there_is(steps: Steps) -> None:
    app = an_app(steps)

    @app.handler("t")
    async def work(job: JobContext, *, wanted: Steps) -> None: ...

    with pytest.raises(HandlerError, match=r"'t'.*no resource of type Steps.*Cache, Database") as e:
        app.check()
    assert "\n" not in str(e.value)
    app.check({Steps: steps})


def test_an_optional_one_may_be_missing() -> None:
    app = WorkerApp()

    @app.handler("t")
    async def work(job: JobContext, *, wanted: Steps | None = None, other: int = 3) -> None: ...

    app.check()


def test_resources_that_need_each_other_are_one_line() -> None:
    app = WorkerApp()

    @app.resource
    def first(*, second: bytes) -> str:
        return ""

    @app.resource
    def second(*, first: str) -> bytes:
        return b""

    with pytest.raises(HandlerError, match="need each other: str → bytes → str"):
        app.check()


def test_two_of_a_type_are_refused_but_may_be_told_apart() -> None:
    app = WorkerApp()
    replica = NewType("replica", Database)

    def main() -> Database:
        return Database(Url("main"))

    def reading() -> Annotated[Database, "reading"]:
        return Database(Url("reading"))

    def other() -> replica:
        return replica(Database(Url("replica")))

    for function in (main, reading, other):
        app.resource(function)
    app.check()
    with pytest.raises(HandlerError, match=r"main.* gives Database already"):
        app.resource(lambda_of_database)


def lambda_of_database() -> Database:
    raise NotImplementedError


def positional(url: Url) -> Database: ...  # type: ignore[empty-body]
def untyped(): ...  # type: ignore[no-untyped-def]
def gives_nothing() -> None: ...


async def mistyped() -> Database:  # type: ignore[misc]
    yield Database(Url(""))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (positional, "parameter 'url' has to be keyword-only"),
        (untyped, "has to say the type of what it gives"),
        (gives_nothing, "has to say the type of what it gives"),
        (mistyped, r"its return type is AsyncIterator\[\.\.\.\]"),
    ],
)
def test_what_is_no_resource_is_one_line(function: Any, words: str) -> None:
    with pytest.raises(HandlerError, match=words) as error:
        WorkerApp().resource(function)
    assert function.__name__ in str(error.value)


def test_an_app_includes_anothers_resources_once(steps: Steps) -> None:
    app, shared = WorkerApp(), an_app(steps)
    app.include(shared)
    app.include(shared)
    assert set(app.resources) == {Url, Database, Cache, float}
    with pytest.raises(HandlerError, match="gives Cache already"):
        app.include(an_app(steps))
