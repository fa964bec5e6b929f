"""Rate limits.

A token bucket, and one bucket per key (a caller, an address) so that none takes more than its share
of a common rate.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final


class TokenBucket:
    """A token bucket that holds what comes in two seconds. `clock` gives seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._tokens = self._capacity = max(1.0, 2 * per_second)
        self._updated_at = clock()

    def seconds_until_available(self) -> float:
        """Return how long to wait until there is one, in seconds; 0 if there is one now."""
        now = self._clock()
        self._tokens = min(
            self._capacity, self._tokens + (now - self._updated_at) * self._per_second
        )
        self._updated_at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self) -> float:
        """Take one if there is one and return 0; else return how long to wait, in seconds."""
        wait = self.seconds_until_available()
        if not wait:
            self._tokens -= 1
        return wait

    def give_back(self) -> None:
        """Put one back that was not needed after all."""
        self._tokens = min(self._capacity, self._tokens + 1)


MAX_KEYS: Final = 4096
"""Keys that have a bucket; of more, the one not used for longest gets a full bucket again."""


class KeyedTokenBuckets:
    """One token bucket per key, each with `per_second` tokens. `clock` gives seconds."""

    def __init__(
        self, per_second: float, clock: Callable[[], float], max_keys: int = MAX_KEYS
    ) -> None:
        self._per_second = per_second
        self._clock = clock
        self._max_keys = max_keys
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def bucket_for(self, key: Hashable) -> TokenBucket:
        """Return the bucket of a key."""
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
