"""Handlers of the jobs that the page on clients submits."""

import asyncio
from typing import Any

from asyncjob import Fail, JobContext, WorkerApp

app = WorkerApp()


@app.handler("SEND_EMAIL")
async def send_email(job: JobContext, payload: dict[str, Any]) -> str:
    if payload.get("to") == "nobody":
        raise Fail("no such address")
    return "sent"


@app.handler("report.sync")
async def sync(job: JobContext) -> None:
    """Take long enough to be met by a second one."""
    await asyncio.sleep(3.0)
