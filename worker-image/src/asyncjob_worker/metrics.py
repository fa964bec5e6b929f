"""The worker's metrics, built from the SDK's table.

Labels are bounded: the first types of the app's own handlers, all else comes from closed lists.
What a part counts or knows anyway is read off it when somebody asks, see `readings`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from asyncjob.instruments import Family, Samples, counter, family, histogram
from asyncjob.lifecycle.move import Move
from asyncjob.metrics import Bound, Spec, worker

MAX_TYPES: Final = 100
"""Job types beyond so many are shown as `other`."""

Reading = Callable[[], Samples]


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._type = Bound(MAX_TYPES)
        self._finished = counter(worker.FINISHED, registry)
        self._fenced = counter(worker.FENCED, registry)
        self._stalls = counter(worker.STALLS, registry)
        self._stalled = counter(worker.STALLED, registry)
        self._watches = counter(worker.WATCHES, registry)
        self._requests = counter(worker.REQUESTS, registry)
        self._request_seconds = histogram(worker.REQUEST_SECONDS, registry)
        self._handler = histogram(worker.HANDLER, registry)

    def expect(self, types: Iterable[str]) -> None:
        """Take the types that may come, and show at 0 what alerts wait for the growth of."""
        for type_ in types:
            self._fenced.labels(*self._type((type_,)))

    def finished(self, type_: str, move: Move) -> None:
        """Count an outcome that is stored."""
        reason = move.reason.value if move.reason else ""
        self._finished.labels(*self._type((type_,)), move.target.value, reason).inc()

    def fenced(self, type_: str) -> None:
        """Count an attempt without a stored outcome."""
        self._fenced.labels(*self._type((type_,))).inc()

    def handled(self, type_: str, seconds: float) -> None:
        """Note how long a handler ran."""
        self._handler.labels(*self._type((type_,))).observe(seconds)

    def stall_begun(self, type_: str) -> None:
        """Count a stall of the event loop."""
        self._stalls.labels(*self._type((type_,))).inc()

    def stalled(self, type_: str, seconds: float) -> None:
        """Add to the time that the event loop stood still."""
        self._stalled.labels(*self._type((type_,))).inc(seconds)

    def watch_begun(self, watch: str) -> Callable[[], None]:
        """Return what counts the beginnings of a watch."""
        return self._watches.labels(watch).inc

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request; the observer of a session, in any thread."""
        self._requests.labels(method, str(code)).inc()
        self._request_seconds.labels(method).observe(seconds)

    def read(self, sources: Mapping[Spec, Reading]) -> None:
        """Show what the sources say whenever somebody asks."""
        self.registry.register(_Readings(sources))


class _Readings(Collector):
    def __init__(self, sources: Mapping[Spec, Reading]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Family]:
        for spec, source in self._sources.items():
            yield family(spec, source())
