"""Whether the gateway is there, and speaks our version of the API."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.json_types import as_object, child, text
from asyncjob.names import VERSION

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
        return problem(
            GATEWAY_CHECK, f"{facts.url} does not answer as a gateway: {facts.error}", way
        )
    if facts.version != VERSION:
        said = f"{facts.url} speaks {facts.version or 'an unknown version'}, this {VERSION}"
        return warning(GATEWAY_CHECK, said, "use the command line of its release")
    return ok(GATEWAY_CHECK, f"{facts.url}, speaks {VERSION}")
