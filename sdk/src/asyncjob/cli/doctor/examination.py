"""The whole examination: in which order the checks run, and which an earlier failure skips."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Final

from asyncjob.cli.connection import ConnectionOptions
from asyncjob.cli.doctor import endpoints, installation, permissions, processes, stuck_jobs
from asyncjob.cli.doctor.arrays import ARRAYS_CHECK, check_arrays, is_chunk
from asyncjob.cli.doctor.findings import Finding, Severity, problem, warning
from asyncjob.client.api import Jobs
from asyncjob.errors import AsyncJobError, code_of
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.rest.listing import Selection
from asyncjob.rest.resources import WorkerInfo

Clock = Callable[[], datetime]

MAX_JOBS_EXAMINED: Final = 2_000
"""Unfinished jobs looked at, the newest; and arrays."""
UNFINISHED: Final = Selection(phase=[phase for phase in Phase if phase not in FINISHED_PHASES])
DEAD_LETTERS: Final = Selection(phase=[Phase.DEAD_LETTER])
CLUSTER_DOWN_HINT: Final = "is the cluster up, and is this the right context? kubectl cluster-info"


def examine_environment(connection: ConnectionOptions, now: Clock) -> list[Finding]:
    """Return what is found around the jobs: of the gateway, or of the cluster."""
    if connection.server:
        return _examine_gateway(
            endpoints.fetch_gateway_facts(connection.server, connection.token, now)
        )
    return asyncio.run(_examine_cluster(connection, now))


def is_reachable(findings: Sequence[Finding]) -> bool:
    """Return whether anything answered, so that it makes sense to ask on."""
    doors = {endpoints.API_SERVER_CHECK, endpoints.GATEWAY_CHECK}
    return not any(one.check in doors and one.severity is Severity.PROBLEM for one in findings)


def _examine_gateway(facts: endpoints.GatewayFacts) -> list[Finding]:
    found = [endpoints.check_gateway(facts)]
    if facts.sent and facts.received:
        found.append(endpoints.check_clock(facts.date, facts.sent, facts.received))
    return found


async def _examine_cluster(connection: ConnectionOptions, now: Clock) -> list[Finding]:
    try:
        access = await load_access(connection.kubeconfig, connection.namespace, connection.context)
        async with KubeSession(access, field_manager="asyncjob-cli") as session:
            facts = await endpoints.fetch_api_server_facts(session, now)
            found = [
                endpoints.check_api_server(facts),
                endpoints.check_clock(facts.date, facts.sent, facts.received),
            ]
            return [*found, *await _examine_installation(session, facts.date or now())]
    except AsyncJobError as error:
        return [problem(endpoints.API_SERVER_CHECK, code_of(error), str(error), CLUSTER_DOWN_HINT)]


async def _examine_installation(session: KubeSession, now: datetime) -> list[Finding]:
    kinds = installation.check_resource_types(await installation.fetch_resource_type_facts(session))
    found = [kinds, *installation.check_policies(await installation.fetch_policy_facts(session))]
    dropped = await installation.fetch_drops_managed_fields(session)
    leases = await processes.fetch_operator_leases(session)
    found += installation.check_managed_fields(dropped=dropped, elects=leases != [])
    found.append(installation.check_enforcement(await installation.probe_enforcement(session)))
    found.append(
        permissions.check_permissions(
            await permissions.fetch_denied(session), session.access.namespace
        )
    )
    return [*found, *processes.check_operator(leases, now)]


def examine_jobs(jobs: Jobs, now: datetime) -> list[Finding]:
    """Return what is found of workers and jobs, by whichever way they are reached."""
    findings: list[Finding] = []
    workers: Sequence[WorkerInfo] = ()
    with _errors_as_findings(findings, processes.WORKERS_CHECK):
        unfinished = list(islice(jobs.list(UNFINISHED), MAX_JOBS_EXAMINED))
        waiting = [
            job for job in unfinished if job.phase is not Phase.RUNNING and not is_chunk(job)
        ]
        workers = jobs.workers()
        findings += processes.check_workers(workers, jobs.queues(), waiting)
        findings += stuck_jobs.check_stuck_jobs(
            unfinished, now, complete=len(unfinished) < MAX_JOBS_EXAMINED
        )
    with _errors_as_findings(findings, ARRAYS_CHECK):
        arrays = list(islice(jobs.arrays(), MAX_JOBS_EXAMINED))
        complete = len(arrays) < MAX_JOBS_EXAMINED
        findings += check_arrays(arrays, processes.types_by_queue(workers), now, complete=complete)
    with _errors_as_findings(findings, "Dead letters"):
        dead = sum(1 for _ in islice(jobs.list(DEAD_LETTERS), MAX_JOBS_EXAMINED))
        findings += stuck_jobs.check_dead_letters(dead, complete=dead < MAX_JOBS_EXAMINED)
    return findings


@contextmanager
def _errors_as_findings(findings: list[Finding], check: str) -> Iterator[None]:
    """Note what could not be looked at; the rest is looked at all the same."""
    try:
        yield
    except AsyncJobError as error:
        findings.append(warning(check, code_of(error), f"could not be looked at: {error}"))
