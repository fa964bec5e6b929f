"""The examples of the pages on handlers: all of them, in order, as a reader would type them."""

import asyncio
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app import ChildView, JobInfo, open_resources
from asyncjob.app.child_jobs import ChildRef
from asyncjob.lifecycle.phases import Phase

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    "reference/handlers.md": {
        "email.send",
        "video.encode",
        "table.import",
        "user.sync",
        "book.render",
        "invoice.send",
    },
    "how-to/share-resources.md": {
        "user.add",
        "page.fetch",
        "user.list",
        "report.count",
    },
    "how-to/fan-out.md": {"sum.all", "sum.part", "sum.one", "sum.later", "sum.report"},
}


class Notes:
    """Takes reports."""

    def __init__(self) -> None:
        self.percent: list[int] = []

    def progress(self, percent: int, message: str | None) -> None:
        assert message
        self.percent.append(percent)

    def checkpoint(self, value: Any) -> None:
        raise AssertionError(value)


class Family:
    """Has children that return at once what their handler, or an echo, returns."""

    def __init__(self, app: WorkerApp) -> None:
        self._app = app
        self.orders: dict[str, Any] = {}

    def submit(self, order: Any) -> Future[Any]:
        self.orders[order.name] = order.manifest["spec"]
        return filled(ChildRef(order.name, order.name))

    def wait(self, child: ChildRef, timeout: float | None) -> Future[Any]:
        assert timeout is None or timeout > 1
        spec = self.orders[child.name]
        handler = self._app.handlers.get(spec["type"])
        result = handler.function(None, spec["payload"]) if handler else spec["payload"]
        view = ChildView(
            child.name, child.uid, spec["type"], Phase.SUCCEEDED, "", "", 1, result=result
        )
        return filled(view)

    def list(self) -> Future[Any]:
        return filled([])

    def stop(self) -> None: ...


def filled(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """Run all examples of a page as one module."""
    module = ModuleType(f"page_{abs(hash(request.param))}")
    sys.modules[module.__name__] = module
    text = (DOCS / request.param).read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, request.param, "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


def a_job(app: WorkerApp, notes: Notes | None = None) -> tuple[JobContext, Family]:
    family = Family(app)
    info = JobInfo("ns", "doc", "uid", "t", "default", 1)
    sink: Any = notes or Notes()
    return JobContext(info, sink, remaining=lambda: 9.0, children=family), family


@pytest.mark.parametrize(("page", "types"), PAGES.items(), ids=PAGES, indirect=["page"])
async def test_the_examples_of_a_page_are_an_app_that_starts(
    page: ModuleType, types: set[str]
) -> None:
    assert set(page.app.handlers) == types
    async with open_resources(page.app) as resources:
        for handler in page.app.handlers.values():
            assert set(resources.arguments(handler.needs)) == set(handler.needs)


@pytest.mark.parametrize("page", ["reference/handlers.md"], indirect=True)
async def test_the_reference_does_what_it_says(page: ModuleType) -> None:
    notes = Notes()
    job, family = a_job(page.app, notes)
    assert await page.send_email(job, page.Email(to="a@b.example", subject="s")) == (
        "sent to a@b.example"
    )
    assert page.encode(job, "a.mov") == "a.mp4"
    assert page.app.handlers["video.encode"].concurrency == 1
    assert page.import_table(job, [1, 2]) == 2
    assert notes.percent == [40, 0, 50]
    assert await page.test_sync_user(job) == "ada from db://fake"
    assert await page.render_book(job, 2) == [{"page": 0}, {"page": 1}]
    assert {spec["queue"] for spec in family.orders.values()} == {"pages"}
    assert await page.timing(job, lambda: asyncio.sleep(0, "result")) == "result"
    assert [hook.function for hook in page.app.hooks] == [page.page_somebody]


@pytest.mark.parametrize("page", ["how-to/share-resources.md"], indirect=True)
async def test_the_shared_resources_work(page: ModuleType) -> None:
    job, _ = a_job(page.app)
    async with open_resources(page.app) as resources:
        given = {
            name: resources.arguments(handler.needs) for name, handler in page.app.handlers.items()
        }
        add = page.add_user
        counts = [await add(job, name, **given["user.add"]) for name in ("b", "a", "b")]
        assert counts == [1, 2, 2]
        assert await page.list_users(job, **given["user.list"]) == ["a", "b"]
        assert page.count(job, **given["report.count"]) == 1
        assert not given["page.fetch"]["http"].closed  # type: ignore[attr-defined]  # a session
    assert await page.names_in_a_fake() == []


@pytest.mark.parametrize("page", ["how-to/fan-out.md"], indirect=True)
async def test_the_fan_out_gathers(page: ModuleType) -> None:
    job, family = a_job(page.app)
    assert await page.sum_all(job, [[1, 2], [3], []]) == 6
    assert await asyncio.to_thread(page.sum_one, job, [4, 5]) == 9
    last = await page.sum_later(job, [[1], [2]])
    assert len(family.orders[last]["dependsOn"]) == 2
    assert await page.sum_report(job, family.orders[last]["payload"]) == 2
