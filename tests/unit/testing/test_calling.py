"""How handlers are called: with their resources, inside middleware, contained where they leave."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app.errors import HandlerExitError
from asyncjob.app.handler import CallNext
from asyncjob.app.inspection import HandlerError
from asyncjob.testing import FakeCluster, Reason, run_handler


class Database:
    def __init__(self, rows: int) -> None:
        self.rows = rows


class Mailer:
    """Nothing in a unit test may send mail."""


def app_of(log: list[str]) -> WorkerApp:
    app = WorkerApp()

    @app.resource
    async def database() -> AsyncIterator[Database]:
        log.append("opened")
        yield Database(1)
        log.append("closed")

    @app.resource
    def mailer() -> Mailer:
        raise AssertionError("opened for a handler that does not need it")

    @app.middleware
    async def noting(job: JobContext, call_next: CallNext, *, database: Database) -> Any:
        log.append(f"before {job.name} {database.rows}")
        return await call_next()

    @app.handler("counts")
    async def counts(job: JobContext, *, database: Database) -> int:
        return database.rows

    @app.handler("counts-sync")
    def counts_sync(job: JobContext, *, database: Database) -> int:
        return database.rows

    @app.handler("mails")
    async def mails(job: JobContext, *, mailer: Mailer) -> str:
        return type(mailer).__name__

    return app


@pytest.mark.parametrize("type_", ["counts", "counts-sync"])
async def test_a_resource_is_replaced_and_the_declared_one_never_opened(type_: str) -> None:
    log: list[str] = []
    run = await run_handler(app_of(log), type_, resources={Database: Database(7)})
    assert run.result == 7
    assert log == ["before job 7"]


async def test_what_is_not_replaced_is_opened_for_the_handler_under_test_alone() -> None:
    log: list[str] = []
    assert (await run_handler(app_of(log), "counts")).result == 1
    assert log == ["opened", "before job 1", "closed"]


async def test_a_cluster_opens_what_all_handlers_need() -> None:
    log: list[str] = []
    async with FakeCluster(app_of(log), resources={Mailer: Mailer()}) as cluster:
        jobs = [await cluster.submit(type_) for type_ in ("counts", "mails")]
        await cluster.run_until_idle()
    assert [job.result for job in jobs] == [1, "Mailer"]
    assert (log[0], log[-1]) == ("opened", "closed")


async def test_a_resource_that_nothing_needs_is_a_mistake() -> None:
    with pytest.raises(HandlerError, match="nothing needs a resource of type int"):
        await run_handler(app_of([]), "counts", resources={int: 5})


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), StopIteration()])
async def test_a_sync_handler_cannot_end_the_test(error: BaseException) -> None:
    app = WorkerApp()

    @app.handler("leaves")
    def leaves(job: JobContext) -> None:
        raise error

    run = await run_handler(app, "leaves")
    assert isinstance(run.error, HandlerExitError)


async def test_a_middlewares_error_is_that_of_the_attempt() -> None:
    app = WorkerApp()

    @app.middleware
    async def refuses(job: JobContext, call_next: CallNext) -> Any:
        raise ValueError("not today")

    @app.handler("plain")
    async def plain(job: JobContext) -> None: ...

    run = await run_handler(app, "plain")
    assert (run.outcome.reason, str(run.error)) == (Reason.HANDLER_FAILED, "not today")
