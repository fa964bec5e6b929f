"""`report.csv`: turns a CSV file into a self-contained HTML page."""

import hashlib
from pathlib import Path

from examples.handlers.places import replacing, target_path
from examples.handlers.report_page import write_page
from examples.handlers.table import BadTableError, Table
from pydantic import BaseModel, ConfigDict

from asyncjob import Category, Fail, JobContext, WorkerApp

app = WorkerApp()

REPORT_EVERY = 1000
"""Rows between two progress reports."""


class ReportRequest(BaseModel):
    """Which file, where to, and which columns to add up; all numeric ones if none is named."""

    model_config = ConfigDict(extra="forbid")

    source: Path
    target: Path
    title: str | None = None
    total: list[str] | None = None


class Report(BaseModel):
    """The result: the file, what is in it, and how to tell that it is unchanged."""

    file: str
    rows: int
    totals: dict[str, str]
    sha256: str


@app.handler("report.csv", timeout=300)
def report_csv(job: JobContext, request: ReportRequest) -> Report:
    """Read the file twice, first for the totals, so that its size does not matter."""
    target = target_path(request.target, ".html")
    job.progress(0, f"adding up {request.source.name}")
    try:
        table = Table.survey(request.source, request.total)
    except BadTableError as error:
        raise Fail(str(error), category=Category.VALIDATION) from error
    with replacing(target) as page:
        write_page(
            page, table, request.title or request.source.stem, lambda row: _tell(job, table, row)
        )
    return Report(
        file=request.target.as_posix(),
        rows=table.rows,
        totals={name: str(column.total) for name, column in table.totals.items()},
        sha256=_checksum(target),
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _tell(job: JobContext, table: Table, row: int) -> None:
    if row % REPORT_EVERY == 0 or row == table.rows:
        job.progress(100 * row / table.rows, f"row {row} of {table.rows}")
