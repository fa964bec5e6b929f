"""A rate that many draw on, of which none may take more than a share."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from asyncjob_gateway.limits.rate import TokenBucket

MAX_KEYS: Final = 4096
"""Drawers that are told apart; of more, those that were longest away begin anew."""


class KeyedTokenBuckets:
    """So many per second of each drawer. `clock` gives seconds."""

    def __init__(
        self, per_second: float, clock: Callable[[], float], max_keys: int = MAX_KEYS
    ) -> None:
        self._per_second = per_second
        self._clock = clock
        self._max_keys = max_keys
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def bucket_for(self, key: Hashable) -> TokenBucket:
        """Return the rate of one drawer."""
        rate = self._buckets.pop(key, None) or TokenBucket(self._per_second, self._clock)
        self._buckets[key] = rate
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return rate


def take_all(*buckets: TokenBucket) -> float:
    """Take one of each and return 0; where one has none, take none and return how long to wait."""
    wait = max(rate.seconds_until_available() for rate in buckets)
    if not wait:
        for rate in buckets:
            rate.take()
    return wait
