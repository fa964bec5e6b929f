"""The whole examination: what is asked in which order, and what is left out without it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Final

from asyncjob.cli.doctor import (
    api,
    clock,
    enforcement,
    gateway,
    operator,
    permissions,
    policies,
    stuck,
    types,
    workers,
)
from asyncjob.cli.doctor.finding import Finding, Severity, problem, warning
from asyncjob.cli.place import ConnectionOptions
from asyncjob.client.interface import Jobs
from asyncjob.errors import AsyncJobError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.rest.selection import Selection

Clock = Callable[[], datetime]

MAX_JOBS_EXAMINED: Final = 2_000
"""Unfinished jobs looked at, the newest."""
UNFINISHED: Final = Selection(phase=[phase for phase in Phase if phase not in FINISHED_PHASES])
DEAD_LETTERS: Final = Selection(phase=[Phase.DEAD_LETTER])
CLUSTER_DOWN_HINT: Final = "is the cluster up, and is this the right context? kubectl cluster-info"


def examine_environment(connection: ConnectionOptions, now: Clock) -> list[Finding]:
    """Return what is found around the jobs: of the gateway, or of the cluster."""
    if connection.server:
        return _examine_gateway(
            gateway.fetch_gateway_facts(connection.server, connection.token, now)
        )
    return asyncio.run(_examine_cluster(connection, now))


def is_reachable(findings: Sequence[Finding]) -> bool:
    """Return whether anything answered, so that it makes sense to ask on."""
    doors = {api.API_SERVER_CHECK, gateway.GATEWAY_CHECK}
    return not any(one.check in doors and one.severity is Severity.PROBLEM for one in findings)


def _examine_gateway(facts: gateway.GatewayFacts) -> list[Finding]:
    found = [gateway.check_gateway(facts)]
    if facts.sent and facts.received:
        found.append(clock.check_clock(facts.date, facts.sent, facts.received))
    return found


async def _examine_cluster(connection: ConnectionOptions, now: Clock) -> list[Finding]:
    try:
        access = await load_access(connection.kubeconfig, connection.namespace, connection.context)
        async with KubeSession(access, field_manager="asyncjob-cli") as session:
            facts = await api.fetch_api_server_facts(session, now)
            found = [
                api.check_api_server(facts),
                clock.check_clock(facts.date, facts.sent, facts.received),
            ]
            return [*found, *await _examine_installation(session, facts.date or now())]
    except AsyncJobError as error:
        return [problem(api.API_SERVER_CHECK, str(error), CLUSTER_DOWN_HINT)]


async def _examine_installation(session: KubeSession, now: datetime) -> list[Finding]:
    kinds = types.check_resource_types(await types.fetch_resource_type_facts(session))
    found = [kinds, *policies.check_policies(await policies.fetch_policy_facts(session))]
    found.append(enforcement.check_enforcement(await enforcement.probe_enforcement(session)))
    found.append(
        permissions.check_permissions(
            await permissions.fetch_denied(session), session.access.namespace
        )
    )
    return [*found, *operator.check_operator(await operator.fetch_operator_leases(session), now)]


def examine_jobs(jobs: Jobs, now: datetime) -> list[Finding]:
    """Return what is found of workers and jobs, by whichever way they are reached."""
    findings: list[Finding] = []
    with _errors_as_findings(findings, workers.WORKERS_CHECK):
        unfinished = list(islice(jobs.list(UNFINISHED), MAX_JOBS_EXAMINED))
        waiting = [job for job in unfinished if job.phase is not Phase.RUNNING]
        findings += workers.check_workers(jobs.workers(), jobs.queues(), waiting)
        findings += stuck.check_stuck_jobs(
            unfinished, now, complete=len(unfinished) < MAX_JOBS_EXAMINED
        )
    with _errors_as_findings(findings, "Dead letters"):
        dead = sum(1 for _ in islice(jobs.list(DEAD_LETTERS), MAX_JOBS_EXAMINED))
        findings += stuck.check_dead_letters(dead, complete=dead < MAX_JOBS_EXAMINED)
    return findings


@contextmanager
def _errors_as_findings(findings: list[Finding], check: str) -> Iterator[None]:
    """Note what could not be looked at; the rest is looked at all the same."""
    try:
        yield
    except AsyncJobError as error:
        findings.append(warning(check, f"could not be looked at: {error}"))
