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
from asyncjob.cli.doctor.finding import Finding, Verdict, problem, warning
from asyncjob.cli.place import Place
from asyncjob.client.interface import Jobs
from asyncjob.errors import AsyncJobError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.phases import FINISHED, Phase
from asyncjob.rest.selection import Selection

Clock = Callable[[], datetime]

MOST: Final = 2_000
"""Unfinished jobs looked at, the newest."""
UNFINISHED: Final = Selection(phase=[phase for phase in Phase if phase not in FINISHED])
DEAD: Final = Selection(phase=[Phase.DEAD_LETTER])
DOWN: Final = "is the cluster up, and is this the right context? kubectl cluster-info"


def examine_surroundings(place: Place, now: Clock) -> list[Finding]:
    """Return what is found around the jobs: of the gateway, or of the cluster."""
    if place.server:
        return _of_gateway(gateway.look(place.server, place.token, now))
    return asyncio.run(_of_cluster(place, now))


def is_there(findings: Sequence[Finding]) -> bool:
    """Return whether anything answered, so that it makes sense to ask on."""
    doors = {api.CHECK, gateway.CHECK}
    return not any(one.check in doors and one.verdict is Verdict.PROBLEM for one in findings)


def _of_gateway(facts: gateway.GatewayFacts) -> list[Finding]:
    found = [gateway.judge(facts)]
    if facts.sent and facts.received:
        found.append(clock.judge(facts.date, facts.sent, facts.received))
    return found


async def _of_cluster(place: Place, now: Clock) -> list[Finding]:
    try:
        access = await load_access(place.kubeconfig, place.namespace, place.context)
        async with KubeSession(access, field_manager="asyncjob-cli") as session:
            facts = await api.look(session, now)
            found = [api.judge(facts), clock.judge(facts.date, facts.sent, facts.received)]
            return [*found, *await _installed(session, facts.date or now())]
    except AsyncJobError as error:
        return [problem(api.CHECK, str(error), DOWN)]


async def _installed(session: KubeSession, now: datetime) -> list[Finding]:
    kinds = types.judge(await types.look(session))
    found = [kinds, *policies.judge(await policies.look(session))]
    found.append(enforcement.judge(await enforcement.look(session)))
    found.append(permissions.judge(await permissions.look(session), session.access.namespace))
    return [*found, *operator.judge(await operator.look(session), now)]


def examine_jobs(jobs: Jobs, now: datetime) -> list[Finding]:
    """Return what is found of workers and jobs, by whichever way they are reached."""
    findings: list[Finding] = []
    with _noted(findings, workers.CHECK):
        unfinished = list(islice(jobs.list(UNFINISHED), MOST))
        waiting = [job for job in unfinished if job.phase is not Phase.RUNNING]
        findings += workers.judge(jobs.workers(), jobs.queues(), waiting)
        findings += stuck.judge(unfinished, now, whole=len(unfinished) < MOST)
    with _noted(findings, "Dead letters"):
        dead = sum(1 for _ in islice(jobs.list(DEAD), MOST))
        findings += stuck.judge_dead(dead, whole=dead < MOST)
    return findings


@contextmanager
def _noted(findings: list[Finding], check: str) -> Iterator[None]:
    """Note what could not be looked at; the rest is looked at all the same."""
    try:
        yield
    except AsyncJobError as error:
        findings.append(warning(check, f"could not be looked at: {error}"))
