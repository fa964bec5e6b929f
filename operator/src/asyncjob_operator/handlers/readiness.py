"""Waits until the operator can work, saying once a minute what is in its way."""

import asyncio
from itertools import chain, repeat
from typing import Final

import structlog

from asyncjob.kube import KubeSession
from asyncjob_operator.core.permissions import (
    CORE,
    FAREWELL,
    RECOVERY,
    SCHEDULES,
    WORKERS,
    Permission,
    election,
)
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings, preflight, unserved
from asyncjob_operator.telemetry.repeats import Repeats

log = structlog.get_logger()

PAUSE_SECONDS: Final = 60.0
FIRST_PAUSES: Final = (1.0, 2.0, 5.0, 10.0)
UNSERVED_PAUSES: Final = (1.0, 2.0, 5.0)
"""Between looks for the type of jobs while running; the last is repeated."""


def asked(settings: Settings, own_namespace: str) -> list[tuple[Permission, str | None]]:
    """Return each permission needed, and the namespace it is needed in."""
    everywhere = CORE + SCHEDULES + (RECOVERY if settings.options.recovery else WORKERS)
    everywhere += FAREWELL if settings.worker_timeout else ()
    pairs = [(permission, scope) for permission in everywhere for scope in settings.scopes]
    if settings.leader_elect:
        home = settings.lease_namespace or own_namespace
        pairs += [(permission, home) for permission in election(settings.lease_name)]
    return pairs


async def wait_until_fit(session: KubeSession, settings: Settings) -> Findings:
    """Return the findings of the first check without errors; warn of all that is found."""
    said: tuple[list[str], list[str]] = ([], [])
    tries = 0
    while True:
        findings = await preflight(session, asked(settings, session.access.namespace))
        say = (sorted(findings.errors), sorted(findings.unguarded + findings.warnings))
        pause = FIRST_PAUSES[tries] if tries < len(FIRST_PAUSES) else PAUSE_SECONDS
        if say != said or pause == PAUSE_SECONDS:
            _say(findings)
        if not findings.errors:
            return findings
        said, tries = say, tries + 1
        await asyncio.sleep(pause)


async def wait_until_served(session: KubeSession) -> None:
    """Wait until jobs can be watched, and say why not, once a minute."""
    repeats, waited = Repeats(monotonic), False
    for pause in chain(UNSERVED_PAUSES, repeat(UNSERVED_PAUSES[-1])):
        wrong = await unserved(session)
        if not wrong:
            break
        waited = True
        if repeats.allow(wrong):
            log.error(wrong)
        await asyncio.sleep(pause)
    if waited:
        log.info("AsyncJobs are served again")


def _say(findings: Findings) -> None:
    for line in (*findings.unguarded, *findings.warnings):
        log.warning(line)
    for line in findings.errors:
        log.error(line)
    if findings.errors:
        log.error("cannot work yet", problems=len(findings.errors))
