"""Processes that end, stand still, or are replaced."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from asyncjob_chaos.faults.busy import occupy
from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.target import GATEWAY, OPERATORS, WORKERS, FaultTarget

BETWEEN_SECONDS: Final = 1.5
API_SERVER_AWAY_SECONDS: Final = 2.0
LONGER_THAN_A_LEASE: Final = 12.0
LONGER_THAN_LEADERSHIP: Final = 14.0


def _kill_workers(target: FaultTarget) -> None:
    for name in WORKERS:
        target.kill(name, Sign.WORKER_ENDED)
        time.sleep(BETWEEN_SECONDS)


def _kill_leader(target: FaultTarget) -> None:
    target.kill(target.leader(), Sign.OPERATOR_ENDED)


def _kill_gateway(target: FaultTarget) -> None:
    target.kill(GATEWAY, Sign.GATEWAY_ENDED)


@contextmanager
def _kill_api_server(target: FaultTarget) -> Iterator[None]:
    target.plane.kill_apiserver()
    target.signs[Sign.API_SERVER_ENDED] += 1
    yield
    target.plane.start_apiserver()


def _frozen(*names: str) -> Callable[[FaultTarget], AbstractContextManager[None]]:
    @contextmanager
    def act(target: FaultTarget) -> Iterator[None]:
        occupy(target, names)
        for name in names:
            target.freeze(name)
        yield
        for name in names:
            target.process(name).resume()

    return act


@contextmanager
def _freeze_leader(target: FaultTarget) -> Iterator[None]:
    leader = target.leader()
    (other,) = (name for name in OPERATORS if name != leader)
    target.freeze(leader)
    yield
    target.until(lambda: target.leads(other), "the other operator to lead")
    target.process(leader).resume()


def _upgrade(target: FaultTarget) -> None:
    for name in (*OPERATORS, *WORKERS):
        target.replace_process(f"{name}-new", name)
    target.restart(GATEWAY)
    target.signs[Sign.UPGRADED] += 1


FAULTS: Final = (
    Fault(
        name="kill-workers",
        does="SIGKILL each worker, one after another",
        shows=(Sign.WORKER_ENDED,),
        act=at_once(_kill_workers),
    ),
    Fault(
        name="kill-operator",
        does="SIGKILL the operator that leads",
        shows=(Sign.OPERATOR_ENDED, Sign.LEADER_CHANGED),
        act=at_once(_kill_leader),
        hold=12.0,
    ),
    Fault(
        name="kill-gateway",
        does="SIGKILL the gateway while it answers",
        shows=(Sign.GATEWAY_ENDED,),
        act=at_once(_kill_gateway),
    ),
    Fault(
        name="kill-apiserver",
        does="SIGKILL the API server, and start it again",
        shows=(Sign.API_SERVER_ENDED,),
        act=_kill_api_server,
        hold=API_SERVER_AWAY_SECONDS,
    ),
    Fault(
        name="stop-short",
        does="SIGSTOP a worker for less than a lease",
        shows=(Sign.FROZEN,),
        act=_frozen(WORKERS[0]),
        hold=1.5,
    ),
    Fault(
        name="stop-long",
        does="SIGSTOP two workers for longer than a lease, then wake them",
        shows=(Sign.FROZEN, Sign.LEASE_EXPIRED),
        act=_frozen(*WORKERS[:2]),
        hold=LONGER_THAN_A_LEASE,
    ),
    Fault(
        name="leader-frozen",
        does="SIGSTOP the operator that leads until the other leads, then wake it",
        shows=(Sign.FROZEN, Sign.LEADER_CHANGED),
        act=_freeze_leader,
        hold=LONGER_THAN_LEADERSHIP,
    ),
    Fault(
        name="rolling-upgrade",
        does="replace each operator and worker by a new Pod with SIGTERM for the old one, and "
        "start the gateway again (all of this version)",
        shows=(Sign.UPGRADED, Sign.LEADER_CHANGED),
        act=at_once(_upgrade),
    ),
)
