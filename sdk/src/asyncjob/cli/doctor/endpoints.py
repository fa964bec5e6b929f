"""Checks the API server or the gateway: does it answer in a supported version.

Also whether the local clock agrees with its clock.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import httpx
import orjson

from asyncjob.cli.doctor.findings import DoctorCode, Finding, ok, problem, warning
from asyncjob.cli.durations import precise_duration
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import as_object, child, text
from asyncjob.kube import KubeSession
from asyncjob.names import VERSION

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
    message = f"{facts.host}, Kubernetes {facts.version or 'of unknown version'}"
    found = re.match(r"v?(\d+)\.(\d+)", facts.version)
    needed = f"asyncjob needs Kubernetes {'.'.join(map(str, MIN_VERSION))} or newer"
    if not found:
        return warning(API_SERVER_CHECK, DoctorCode.VERSION_UNKNOWN, message, needed)
    if (int(found[1]), int(found[2])) < MIN_VERSION:
        return problem(
            API_SERVER_CHECK, DoctorCode.VERSION_TOO_OLD, f"{message} is too old", needed
        )
    return ok(API_SERVER_CHECK, message)


GATEWAY_CHECK: Final = "Gateway"
_GATEWAY_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """What a gateway says of itself; `error` where it does not."""

    url: str
    version: str = ""
    error: str = ""
    date: datetime | None = None
    sent: datetime | None = None
    received: datetime | None = None


def fetch_gateway_facts(url: str, token: str | None, now: Callable[[], datetime]) -> GatewayFacts:
    """Ask for its OpenAPI document, which has its version."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent = now()
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/openapi.json", headers=headers, timeout=_GATEWAY_TIMEOUT_SECONDS
        )
        answer.raise_for_status()
        version = text(child(as_object(answer.json()), "info"), "version")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return GatewayFacts(url, error=f"{type(error).__name__}: {error}")
    date = answer.headers.get("Date")
    return GatewayFacts(
        url, version, date=parsedate_to_datetime(date) if date else None, sent=sent, received=now()
    )


def check_gateway(facts: GatewayFacts) -> Finding:
    """Return whether it answers, in the version that we speak."""
    if facts.error:
        way = "is the URL right, and is it running? Straight on the cluster: --server ''"
        message = f"{facts.url} does not answer as a gateway: {facts.error}"
        return problem(GATEWAY_CHECK, DoctorCode.NO_GATEWAY, message, way)
    if facts.version != VERSION:
        message = f"{facts.url} speaks {facts.version or 'an unknown version'}, this {VERSION}"
        way = "use the command line of its release"
        return warning(GATEWAY_CHECK, DoctorCode.GATEWAY_VERSION, message, way)
    return ok(GATEWAY_CHECK, f"{facts.url}, speaks {VERSION}")


CLOCK_CHECK: Final = "Clock"
WARNING_SECONDS: Final = 5.0
"""Seconds from which the ages shown here are wrong."""
PROBLEM_SECONDS: Final = 300.0
"""Seconds from which tokens and times given here mean something else there."""
DATE_RESOLUTION: Final = timedelta(seconds=1)
"""A Date header is cut to the second."""

_SYNCHRONISE: Final = "synchronise this machine's clock (NTP)"


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """How far this clock is ahead, in seconds: somewhere between the two."""

    min_seconds: float
    max_seconds: float

    @property
    def certain_seconds(self) -> float:
        """Return how far it differs at least, whatever the network took."""
        return max(self.min_seconds, -self.max_seconds, 0.0)


def clock_skew(date: datetime, sent: datetime, received: datetime) -> ClockSkew:
    """Return the difference, given the server's time and when we asked and were answered."""
    least = (sent - (date + DATE_RESOLUTION)).total_seconds()
    return ClockSkew(least, (received - date).total_seconds())


def check_clock(date: datetime | None, sent: datetime, received: datetime) -> Finding:
    """Return whether the clocks agree."""
    if date is None:
        message = "the API server does not say what time it is"
        return warning(CLOCK_CHECK, DoctorCode.CLOCK_UNKNOWN, message)
    apart = clock_skew(date, sent, received)
    if apart.certain_seconds < WARNING_SECONDS:
        bound = max(abs(apart.min_seconds), abs(apart.max_seconds))
        return ok(CLOCK_CHECK, f"within {precise_duration(bound)} of the API server's")
    way = "ahead of" if apart.min_seconds > 0 else "behind"
    message = f"at least {precise_duration(apart.certain_seconds)} {way} the API server's"
    return (problem if apart.certain_seconds >= PROBLEM_SECONDS else warning)(
        CLOCK_CHECK, DoctorCode.CLOCK_SKEW, message, _SYNCHRONISE
    )
