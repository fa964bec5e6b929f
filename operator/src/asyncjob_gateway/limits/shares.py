"""A rate that many draw on, of which none may take more than a share."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from asyncjob_gateway.limits.rate import Rate

KNOWN: Final = 4096
"""Drawers that are told apart; of more, those that were longest away begin anew."""


class Shares:
    """So many per second of each drawer. `clock` gives seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float], known: int = KNOWN) -> None:
        self._per_second = per_second
        self._clock = clock
        self._known = known
        self._rates: OrderedDict[Hashable, Rate] = OrderedDict()

    def of(self, drawer: Hashable) -> Rate:
        """Return the rate of one drawer."""
        rate = self._rates.pop(drawer, None) or Rate(self._per_second, self._clock)
        self._rates[drawer] = rate
        if len(self._rates) > self._known:
            self._rates.popitem(last=False)
        return rate


def take_all(*rates: Rate) -> float:
    """Take one of each and return 0; where one has none, take none and return how long to wait."""
    wait = max(rate.wait() for rate in rates)
    if not wait:
        for rate in rates:
            rate.take()
    return wait
