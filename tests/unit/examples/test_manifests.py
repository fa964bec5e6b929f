"""The example manifests: one object each, explained in a line, for handlers that exist."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from examples.handlers import app
from examples.handlers.order_book import Order
from pydantic import ValidationError

from asyncjob import AsyncCronJob, AsyncJob, AsyncQueue
from asyncjob.lifecycle.derived_jobs import run_name
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.models import AsyncCronJobSpec
from asyncjob.models.array import AsyncArray
from asyncjob_dev.demo.rows import READABLE, manifest_for
from asyncjob_operator.core.schedules.calendar import parse_schedule
from asyncjob_operator.core.schedules.view import format_epoch
from unit.examples.notes import ROOT

EXAMPLES = ROOT / "examples"
CRON = EXAMPLES / "nightly-report.yaml"
ARRAY = EXAMPLES / "check-orders.yaml"
ROWS = EXAMPLES / "check-rows.yaml"
QUEUES = [EXAMPLES / "api-queue.yaml", EXAMPLES / "queue.yaml"]
JOBS = sorted(
    set(EXAMPLES.glob("*.yaml")) - {*QUEUES, ARRAY, ROWS, CRON, EXAMPLES / "mistake.yaml"}
)
SUBMITTED = {
    *("words.count-file", "order.check/index", "order.check/items", "order.check/store"),
}
"""Types of jobs that nobody but a handler or the operator submits."""

CHAIN = sorted((EXAMPLES / "chain").glob("*.yaml"))
HOW_TO = ROOT / "docs/how-to/schedule-jobs.md"


def load(path: Path) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    "path", [*sorted(EXAMPLES.glob("*.yaml")), *CHAIN], ids=lambda path: path.stem
)
def test_a_manifest_begins_with_one_line_that_explains_it(path: Path) -> None:
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert not second.startswith("#")


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_job_fits_the_model_and_its_handler(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    job = AsyncJob.model_validate(load(path))
    assert load(path)["metadata"]["name"] == path.stem
    app.handlers[job.spec.type].read_payload(job.spec.payload)


def test_the_schedule_can_be_read_and_its_job_fits_the_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    cron = AsyncCronJob.model_validate(load(CRON))
    job = cron.spec.job_template.spec
    app.handlers[job.type].read_payload(job.payload)
    plan = parse_schedule(cron.spec.schedule, cron.spec.time_zone, f"default/{CRON.stem}")
    following = plan.first_after(parse_timestamp("2026-11-21T06:00:00Z").timestamp())
    assert following
    page = HOW_TO.read_text(encoding="utf-8")
    assert format_epoch(following) in page
    assert f"`{run_name(CRON.stem, following)}`" in page


def test_the_how_to_shows_schedules_that_can_be_read() -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    spec: dict[str, Any] = {}
    for block in page.split("```yaml\n")[1:]:
        spec |= yaml.safe_load(block.split("```")[0])["spec"]
    assert AsyncCronJobSpec.model_validate(spec).backfill
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `H")]
    assert len(rows) == 5
    for row in rows:
        assert parse_schedule(row, "UTC", "ns/name").first_after(0.0)


def test_the_queues_fit_their_model_and_have_jobs() -> None:
    limited, plain = (AsyncQueue.model_validate(load(path)) for path in QUEUES)
    assert plain.spec.defaults is not None
    assert limited.spec.rate_limit is not None
    assert limited.metadata.name == load(EXAMPLES / "call-api.yaml")["spec"]["queue"]


def test_the_array_fits_its_handler() -> None:
    array = AsyncArray.model_validate(load(ARRAY))
    assert f"{array.spec.type}/items" in app.handlers
    assert array.spec.items.inline
    for item in array.spec.items.inline:
        Order.model_validate(item)


def test_the_array_of_a_file_reads_rows_that_are_orders_but_for_the_one_it_allows() -> None:
    array = AsyncArray.model_validate(yaml.safe_load(manifest_for(ROWS, ROOT)))
    assert array.metadata.name == ROWS.stem
    assert f"{array.spec.type}/items" in app.handlers
    source = array.spec.items.from_
    assert source is not None
    file = Path(source.uri.removeprefix("file://"))
    assert file.parent == ROOT / READABLE
    with file.open(encoding="utf-8", newline="") as opened:
        header, *rows = csv.reader(opened)
    orders = [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)]
    for order in orders:
        Order.model_validate(order)
    assert len(rows) - len(orders) == array.spec.max_failed == 1


def test_the_mistake_is_the_one_its_comment_names() -> None:
    with pytest.raises(ValidationError, match="maxRetries") as refusal:
        AsyncJob.model_validate(load(EXAMPLES / "mistake.yaml"))
    assert refusal.value.error_count() == 1


def test_the_jobs_of_the_chain_fit_their_handlers_and_depend_on_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    chain = {path.stem: AsyncJob.model_validate(load(path)) for path in CHAIN}
    assert {job.metadata.name for job in chain.values()} == set(chain)
    for job in chain.values():
        app.handlers[job.spec.type].read_payload(job.spec.payload)
        assert {one.name for one in job.spec.depends_on or ()} <= set(chain)
    assert [name for name, job in chain.items() if not job.spec.depends_on] == ["digest"]


def test_the_page_of_the_examples_tells_of_each() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.yaml") if f"`{path.name}`" not in page] == []


def test_every_handler_has_an_example() -> None:
    assert {load(path)["spec"]["type"] for path in JOBS} == set(app.handlers) - SUBMITTED
