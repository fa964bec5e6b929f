"""Whether the API server is there, and new enough."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import orjson

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import as_object, text
from asyncjob.kube import KubeSession

API_SERVER_CHECK: Final = "API server"
MIN_VERSION: Final = (1, 32)
"""Selectable fields of custom resources came then."""
_API_TIMEOUT_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class ApiServerFacts:
    """What the API server says of itself, and of the time."""

    host: str
    version: str
    date: datetime | None
    sent: datetime
    received: datetime


async def fetch_api_server_facts(
    session: KubeSession, now: Callable[[], datetime]
) -> ApiServerFacts:
    """Ask for the version; the answer's Date header has the server's time."""
    sent = now()
    try:
        async with asyncio.timeout(_API_TIMEOUT_SECONDS):
            response = await session.stream("/version", {}, "application/json")
            async with response:
                body, date = await response.read(), response.headers.get("Date")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise UnknownOutcomeError(f"no answer from {session.access.host}: {error}") from error
    version = text(as_object(orjson.loads(body)), "gitVersion")
    return ApiServerFacts(session.access.host, version, _parse_date(date), sent, now())


def _parse_date(date: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(date) if date else None
    except ValueError:
        return None


def check_api_server(facts: ApiServerFacts) -> Finding:
    """Return whether it is new enough."""
    said = f"{facts.host}, Kubernetes {facts.version or 'of unknown version'}"
    found = re.match(r"v?(\d+)\.(\d+)", facts.version)
    least = ".".join(map(str, MIN_VERSION))
    if not found:
        return warning(API_SERVER_CHECK, said, f"asyncjob needs Kubernetes {least} or newer")
    if (int(found[1]), int(found[2])) < MIN_VERSION:
        return problem(
            API_SERVER_CHECK, f"{said} is too old", f"asyncjob needs Kubernetes {least} or newer"
        )
    return ok(API_SERVER_CHECK, said)
