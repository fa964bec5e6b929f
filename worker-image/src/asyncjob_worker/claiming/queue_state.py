"""What a worker watches of its queue: the AsyncQueue and the queue's live workers.

The AsyncQueue says whether claims are paused or limited, and holds the defaults for jobs. A worker
counts as live while its Lease keeps changing, by this process's own clock.
"""

from collections.abc import Callable, Iterable, Sequence

from asyncjob.json_types import JsonObject, child, flag, opt_integer, text
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS, PolicyLayer, read_policy_layer
from asyncjob.names import QUEUE_LABEL
from asyncjob.shards import SHARDS
from asyncjob.worker_lease import read_worker_lease
from asyncjob_worker.leases.registration import LIVE_RENEWAL_INTERVALS

_LIMIT_FIELDS = ("maxConcurrency", "maxConcurrencyPerKey", "rateLimit")


class QueueState:
    """The AsyncQueue of one queue; without such an object the queue is open.

    `on_change` is called at each change, `on_unlimited` when all limits are removed: jobs that were
    passed over for them may be claimed then.
    """

    def __init__(self, on_change: Callable[[], None], on_unlimited: Callable[[], None]) -> None:
        self._on_change = on_change
        self._on_unlimited = on_unlimited
        self.synced = False
        self.paused = False
        self.limited = False
        self.priority_ageing_seconds: int | None = None
        self.defaults = PolicyLayer()
        self.cancel_grace = DEFAULT_CANCEL_GRACE_SECONDS

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace the state by a list: the one queue, or nothing."""
        self._update(objects[0] if objects else {})
        self.synced = True
        self._on_change()

    def apply(self, event: WatchEvent) -> None:
        """Apply a change of the queue."""
        self._update({} if event.type == "DELETED" else event.object)
        self._on_change()

    def _update(self, queue: JsonObject) -> None:
        spec = child(queue, "spec")
        self.paused = flag(spec, "paused")
        was_limited, self.limited = self.limited, any(name in spec for name in _LIMIT_FIELDS)
        if was_limited and not self.limited:
            self._on_unlimited()
        defaults = child(spec, "defaults")
        self.defaults = read_policy_layer(defaults)
        self.priority_ageing_seconds = opt_integer(spec, "priorityAgeingSeconds")
        grace = opt_integer(defaults, "cancelGraceSeconds")
        self.cancel_grace = DEFAULT_CANCEL_GRACE_SECONDS if grace is None else grace


class LiveWorkers:
    """The live workers of the queue; `on_change` is called when they change.

    `interval` is that of Lease renewals, in seconds; `clock` gives seconds. `types` are those that
    this worker has announced.
    """

    def __init__(
        self,
        holder: LeaseHolder,
        interval: float,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        types: Iterable[str] = (),
    ) -> None:
        self._kind = frozenset(types), SHARDS
        self._holder = holder
        self._interval = interval
        self._clock = clock
        self._on_change = on_change
        self._observed: dict[str, tuple[str, str, float]] = {}
        self._kinds: dict[str, tuple[frozenset[str], int]] = {}
        """By the name of the Lease, what a worker can do: its types, and how many shards it knows
        of; none before there were any."""

        self._live: frozenset[str] = frozenset({holder.worker})
        self.synced = False

    @property
    def live(self) -> frozenset[str]:
        """Identities of the live workers, this one included."""
        return self._live

    @property
    def peers(self) -> frozenset[str]:
        """Identities of the live workers of the same types that know shards, this one included."""
        alike = {
            worker
            for name, (worker, _, _) in self._observed.items()
            if self._kinds.get(name) == self._kind
        }
        return self._live & alike | {self._holder.worker}

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace the known Leases by a list."""
        names = {_lease_name(lease) for lease in objects}
        self._observed = {
            name: observed for name, observed in self._observed.items() if name in names
        }
        self._kinds = {name: kind for name, kind in self._kinds.items() if name in names}
        for lease in objects:
            self._observe(lease)
        first, self.synced = not self.synced, True
        self.refresh(first=first)

    def apply(self, event: WatchEvent) -> None:
        """Apply a change of one Lease."""
        if event.type == "DELETED":
            self._observed.pop(_lease_name(event.object), None)
            self._kinds.pop(_lease_name(event.object), None)
        else:
            self._observe(event.object)
        self.refresh()

    def tick(self) -> None:
        """Expire silent workers; to be called every `interval`.

        Without permission to list the Leases there is no list to wait for: the worker goes on alone
        after the first call.
        """
        first, self.synced = not self.synced, True
        self.refresh(first=first)

    def refresh(self, *, first: bool = False) -> None:
        """Determine the live workers again, without those silent for LIVE_RENEWAL_INTERVALS."""
        silent_since = self._clock() - self._interval * LIVE_RENEWAL_INTERVALS
        live = {
            worker
            for worker, _, changed_at in self._observed.values()
            if worker and changed_at > silent_since
        }
        live.add(self._holder.worker)
        if live != self._live or first:
            self._live = frozenset(live)
            self._on_change()

    def _observe(self, lease: JsonObject) -> None:
        view = read_worker_lease(lease)
        seen, known = (view.claiming_worker, view.renew_time), self._observed.get(view.name)
        if known is None or known[:2] != seen:
            self._observed[view.name] = (*seen, self._clock())
            self._kinds[view.name] = frozenset(view.types or ()), view.shards


def worker_leases_params(queue: str) -> dict[str, str]:
    """Return the query that selects the Leases of a queue's workers."""
    return {"labelSelector": f"{QUEUE_LABEL}={queue}"}


def _lease_name(lease: JsonObject) -> str:
    return text(child(lease, "metadata"), "name")
