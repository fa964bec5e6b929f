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

CHECK: Final = "API server"
LEAST: Final = (1, 32)
"""Selectable fields of custom resources came then."""
_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """What the API server says of itself, and of the time."""

    host: str
    version: str
    date: datetime | None
    sent: datetime
    received: datetime


async def look(session: KubeSession, now: Callable[[], datetime]) -> ApiFacts:
    """Ask for the version; the answer's Date header has the server's time."""
    sent = now()
    try:
        async with asyncio.timeout(_SECONDS):
            response = await session.stream("/version", {}, "application/json")
            async with response:
                body, date = await response.read(), response.headers.get("Date")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise UnknownOutcomeError(f"no answer from {session.access.host}: {error}") from error
    version = text(as_object(orjson.loads(body)), "gitVersion")
    return ApiFacts(session.access.host, version, _moment(date), sent, now())


def _moment(date: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(date) if date else None
    except ValueError:
        return None


def judge(facts: ApiFacts) -> Finding:
    """Return whether it is new enough."""
    said = f"{facts.host}, Kubernetes {facts.version or 'of unknown version'}"
    found = re.match(r"v?(\d+)\.(\d+)", facts.version)
    least = ".".join(map(str, LEAST))
    if not found:
        return warning(CHECK, said, f"asyncjob needs Kubernetes {least} or newer")
    if (int(found[1]), int(found[2])) < LEAST:
        return problem(CHECK, f"{said} is too old", f"asyncjob needs Kubernetes {least} or newer")
    return ok(CHECK, said)
