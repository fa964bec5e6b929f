"""A network that is cut, slow, or loses answers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from asyncjob_chaos.faults.busy import occupy
from asyncjob_chaos.faults.fault import Fault
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.target import OPERATORS, WORKERS, FaultTarget, Setup
from asyncjob_chaos.tools.proxy import Mode

EVERYBODY: Final = frozenset({*WORKERS, *OPERATORS})
CUT_WORKERS: Final = WORKERS[:2]


def _network(
    mode: Mode, sign: Sign, *, seconds: float = 0.0, share: float = 0.0
) -> Callable[[FaultTarget], AbstractContextManager[None]]:
    @contextmanager
    def act(target: FaultTarget) -> Iterator[None]:
        for proxy in target.proxies.values():
            proxy.set(mode, seconds=seconds, share=share)
        yield
        for proxy in target.proxies.values():
            proxy.set(Mode.OPEN)
            target.signs[sign] += proxy.hits

    return act


@contextmanager
def _cut(target: FaultTarget) -> Iterator[None]:
    occupy(target, CUT_WORKERS)
    with _network(Mode.SILENT, Sign.CUT)(target):
        yield


FAULTS: Final = (
    Fault(
        name="network-cut",
        does="two workers and an operator reach nobody for longer than a lease, without notice",
        shows=(Sign.CUT, Sign.LEASE_EXPIRED),
        act=_cut,
        hold=13.0,
        setup=Setup(proxied=frozenset({*CUT_WORKERS, OPERATORS[0]})),
    ),
    Fault(
        name="network-reset",
        does="all connections of operators and workers are reset, new ones as well",
        shows=(Sign.CUT,),
        act=_network(Mode.RESET, Sign.CUT),
        hold=4.0,
        setup=Setup(proxied=EVERYBODY),
    ),
    Fault(
        name="network-slow",
        does="everything between operators, workers and API server takes 0.4 s longer each way",
        shows=(Sign.DELAYED,),
        act=_network(Mode.DELAY, Sign.DELAYED, seconds=0.4),
        hold=8.0,
        setup=Setup(proxied=EVERYBODY),
    ),
    Fault(
        name="answers-lost",
        does="requests of workers and operators take effect, and many of the answers never come",
        shows=(Sign.CUT, Sign.ANSWER_ADOPTED),
        act=_network(Mode.LOSE_ANSWERS, Sign.CUT, share=0.2),
        hold=10.0,
        setup=Setup(proxied=EVERYBODY),
    ),
)
