"""`books.close`: the books of the day before, by the calendar of a time zone."""

import asyncio
import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from examples.handlers.places import replacing, target_path
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import JobContext, WorkerApp

app = WorkerApp()


class Books(BaseModel):
    """Whose day it is, and where its file goes; `pause` is how long it takes, in seconds."""

    model_config = ConfigDict(extra="forbid")

    zone: str
    folder: Path
    pause: float = Field(default=0.0, ge=0, le=60)


@app.handler("books.close", timeout=3600)
async def close_books(job: JobContext, books: Books) -> str:
    """Go by the time that the run is for, not by the time at which it runs."""
    run_for = job.scheduled_time or datetime.now(UTC)
    day = run_for.astimezone(ZoneInfo(books.zone)).date() - timedelta(days=1)
    await asyncio.sleep(books.pause)
    with replacing(target_path(books.folder / f"{day}.csv", ".csv")) as file:
        csv.writer(file).writerow(["closed", day.isoformat(), job.attempt])
    return day.isoformat()
