"""Waits until the operator can work, and logs once a minute what is missing."""

import asyncio
from itertools import chain, repeat
from typing import Final

import structlog

from asyncjob.backoff import with_jitter
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import MAX_OUTAGE_BACKOFF
from asyncjob_operator.core.permissions import (
    ARRAY_PERMISSIONS,
    CORE,
    RECOVERY,
    SCHEDULES,
    STALE_WORKERS,
    WORKERS,
    Permission,
    election,
)
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings, check_job_api, preflight
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.logs import LogThrottle

log = structlog.get_logger()

FIRST_RECHECK_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
RECHECK_SECONDS: Final = 60.0
"""Between checks for what is missing: the first few, as an installation may be under way, and all
later ones, when somebody has to act."""

AGES_NOT_STORED: Final = (
    "jobs have no managedFields, and without leader election nothing stores when they ended: "
    "retention counts their age from each start of the operator; use --leader-elect"
)

JOB_API_RECHECK_SECONDS: Final = (1.0, 2.0, 5.0)
"""Between looks for the type of jobs while running; the last is repeated."""


def required_permissions(
    settings: Settings, own_namespace: str
) -> list[tuple[Permission, str | None]]:
    """Return each permission needed, and the namespace it is needed in."""
    everywhere = (
        CORE + SCHEDULES + ARRAY_PERMISSIONS + (RECOVERY if settings.options.recovery else WORKERS)
    )
    everywhere += STALE_WORKERS if settings.worker_timeout else ()
    pairs = [
        (permission, scope) for permission in everywhere for scope in settings.watched_namespaces
    ]
    if settings.leader_elect:
        home = settings.lease_namespace or own_namespace
        pairs += [(permission, home) for permission in election(settings.lease_name)]
    return pairs


async def wait_for_prerequisites(session: KubeSession, settings: Settings) -> Findings:
    """Return the findings of the first check without errors; warn of all that is found."""
    reported: tuple[list[str], list[str]] = ([], [])
    reported_at, tries = monotonic(), 0
    while True:
        findings = await preflight(
            session, required_permissions(settings, session.access.namespace)
        )
        current = _comparable(findings)
        pause = (
            FIRST_RECHECK_SECONDS[tries] if tries < len(FIRST_RECHECK_SECONDS) else RECHECK_SECONDS
        )
        if current != reported or monotonic() >= reported_at + RECHECK_SECONDS:
            _log_findings(findings)
            reported_at = monotonic()
        if not findings.errors:
            if findings.drops_managed_fields and not settings.leader_elect:
                log.warning(AGES_NOT_STORED)
            return findings
        reported, tries = current, tries + 1
        if findings.unreachable:
            pause = with_jitter(min(pause, MAX_OUTAGE_BACKOFF))
        await asyncio.sleep(pause)


async def wait_for_job_api(session: KubeSession) -> None:
    """Wait until jobs can be watched, and say why not, once a minute."""
    repeats, waited = LogThrottle(monotonic), False
    for pause in chain(JOB_API_RECHECK_SECONDS, repeat(JOB_API_RECHECK_SECONDS[-1])):
        wrong = await check_job_api(session)
        if not wrong:
            break
        waited = True
        if repeats.allow(wrong):
            log.error(wrong)
        await asyncio.sleep(pause)
    if waited:
        log.info("AsyncJobs are served again")


def _comparable(findings: Findings) -> tuple[list[str], list[str]]:
    """Return what is said, in one order; which request failed first in an outage is chance."""
    if findings.unreachable:
        return ["unreachable"], []
    return sorted(findings.errors), sorted(findings.missing_policies + findings.warnings)


def _log_findings(findings: Findings) -> None:
    for line in (*findings.missing_policies, *findings.warnings):
        log.warning(line)
    for line in findings.errors:
        log.error(line)
    if findings.errors:
        log.error("cannot work yet", problems=len(findings.errors))
