"""`api.call`: a call to an API that allows so many requests a second.

Two things keep to the limit. The AsyncQueue `api` lets so many jobs start a second, over all
workers. And where the API, which has other callers, still says "too many", it says when to come
back, and the job does. The idempotency key is the job's, not the attempt's: an answer that got lost
is no reason for a second order.
"""

import os
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from asyncjob import Category, JobContext, Retry, RetryPolicy, WorkerApp

app = WorkerApp()

MAX_WAIT = 300.0
"""Seconds; however long the API wants us to stay away."""

PATIENT = RetryPolicy(
    max_retries=10,
    initial_delay_seconds=1,
    no_retry_on=[Category.VALIDATION, Category.PERMISSION],
)


class ApiRefusedError(Exception):
    """The API will never take this request."""


class ApiDownError(Exception):
    """The API has trouble of its own."""


app.categorize(ApiRefusedError, Category.VALIDATION)
app.categorize(ApiDownError, Category.NETWORK)


class Call(BaseModel):
    """What to post where; the API itself is the worker's choice, not the job's."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(pattern=r"^(/[-\w.]+)+$", max_length=200)
    body: dict[str, JsonValue]


class Answer(BaseModel):
    """What the API said."""

    status: int
    body: JsonValue


@app.resource
async def api() -> AsyncIterator[aiohttp.ClientSession]:
    """Keep connections open between jobs; a request that hangs for 10 s is a `Timeout`."""
    address = os.environ.get("EXAMPLE_API", "http://127.0.0.1:8000")
    patience = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(address, timeout=patience) as session:
        yield session


@app.handler("api.call", timeout=30, retry=PATIENT)
async def call_api(job: JobContext, call: Call, *, http: aiohttp.ClientSession) -> Answer:
    """Post it once, however often the job runs."""
    key = {"Idempotency-Key": job.uid}
    async with http.post(call.path, json=call.body, headers=key) as response:
        await _check(response)
        return Answer(status=response.status, body=await response.json())


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raise what says best whether, and when, to try again."""
    said = f"the API answered {response.status}: {(await response.text())[:200]}"
    match response.status:
        case HTTPStatus.TOO_MANY_REQUESTS:
            raise Retry(said, after=_retry_after(response), category=Category.RATE_LIMITED)
        case HTTPStatus.SERVICE_UNAVAILABLE:
            raise Retry(said, after=_retry_after(response), category=Category.NETWORK)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            raise PermissionError(said)
        case status if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ApiDownError(said)
        case status if status >= HTTPStatus.BAD_REQUEST:
            raise ApiRefusedError(said)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Return the seconds that the API asks for, as a number or by its own clock; None: neither."""
    wanted = response.headers.get("Retry-After", "")
    if wanted.isdecimal():
        return min(float(wanted), MAX_WAIT)
    try:
        until = parsedate_to_datetime(wanted)
        now = parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None
    return min(max(0.0, (until - now).total_seconds()), MAX_WAIT)
