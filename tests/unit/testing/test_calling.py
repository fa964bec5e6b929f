"""How handlers are called: by keyword with their resources, contained where they try to leave."""

import contextvars
from dataclasses import replace
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app import Handler, JobInfo
from asyncjob.testing import TestKitError, run_handler
from asyncjob.testing.calling import HandlerExitError, start
from asyncjob.testing.reports import Inbox


class Database:
    rows = 3


async def counts(job: JobContext, *, database: Database, limit: int = 5) -> tuple[int, int]:
    return database.rows, limit


def counts_sync(job: JobContext, *, database: Database) -> int:
    return database.rows


def handler_of(function: Any) -> Handler:
    app = WorkerApp()

    @app.handler("plain")
    async def plain(job: JobContext) -> None: ...

    return replace(app.handlers["plain"], function=function)


async def call(function: Any, resources: dict[Any, object]) -> object:
    info = JobInfo("default", "job", "uid", "plain", "default", 1)
    job = JobContext(info, Inbox(lambda: None), remaining=lambda: 1.0)
    context = contextvars.copy_context()
    return await start(handler_of(function), job, None, resources, context)


async def test_resources_are_injected_by_type_and_defaults_left_alone() -> None:
    assert await call(counts, {Database: Database()}) == (3, 5)
    assert await call(counts, {Database: Database(), int: 9}) == (3, 9)


async def test_a_missing_resource_is_named_with_the_way_out() -> None:
    with pytest.raises(TestKitError, match=r"wants database: Database.*resources=\{Database: "):
        await call(counts_sync, {})


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), StopIteration()])
async def test_a_sync_handler_cannot_end_the_test(error: BaseException) -> None:
    app = WorkerApp()

    @app.handler("leaves")
    def leaves(job: JobContext) -> None:
        raise error

    run = await run_handler(app, "leaves")
    assert isinstance(run.error, HandlerExitError)
