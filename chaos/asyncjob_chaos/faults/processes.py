"""Processes that end, stand still, or are replaced."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from asyncjob_chaos.faults.busy import occupy
from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.scene import GATEWAY, OPERATORS, WORKERS, Scene

BETWEEN_SECONDS: Final = 1.5
API_SERVER_AWAY_SECONDS: Final = 2.0
LONGER_THAN_A_LEASE: Final = 12.0
LONGER_THAN_LEADERSHIP: Final = 14.0


def _kill_workers(scene: Scene) -> None:
    for name in WORKERS:
        scene.kill(name, Sign.WORKER_ENDED)
        time.sleep(BETWEEN_SECONDS)


def _kill_leader(scene: Scene) -> None:
    scene.kill(scene.leader(), Sign.OPERATOR_ENDED)


def _kill_gateway(scene: Scene) -> None:
    scene.kill(GATEWAY, Sign.GATEWAY_ENDED)


@contextmanager
def _kill_api_server(scene: Scene) -> Iterator[None]:
    scene.plane.kill_apiserver()
    scene.signs[Sign.API_SERVER_ENDED] += 1
    yield
    scene.plane.start_apiserver()


def _frozen(*names: str) -> Callable[[Scene], AbstractContextManager[None]]:
    @contextmanager
    def act(scene: Scene) -> Iterator[None]:
        occupy(scene, names)
        for name in names:
            scene.freeze(name)
        yield
        for name in names:
            scene.process(name).resume()

    return act


@contextmanager
def _freeze_leader(scene: Scene) -> Iterator[None]:
    leader = scene.leader()
    (other,) = (name for name in OPERATORS if name != leader)
    scene.freeze(leader)
    yield
    scene.until(lambda: scene.leads(other), "the other operator to lead")
    scene.process(leader).resume()


def _upgrade(scene: Scene) -> None:
    for name in (*OPERATORS, *WORKERS):
        scene.replace_process(f"{name}-new", name)
    scene.restart(GATEWAY)
    scene.signs[Sign.UPGRADED] += 1


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
        "start the gateway anew (all of this version)",
        shows=(Sign.UPGRADED, Sign.LEADER_CHANGED),
        act=at_once(_upgrade),
    ),
)
