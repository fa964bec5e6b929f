"""What a worker has to know of its queue: paused, limited, and the defaults it gives to jobs."""

from collections.abc import Callable, Sequence

from asyncjob.json_types import JsonObject, child, flag, opt_integer
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS, PolicyLayer, read_policy_layer

_LIMIT_FIELDS = ("maxConcurrency", "maxConcurrencyPerKey", "rateLimit")


class QueueState:
    """The AsyncQueue of one queue; without such an object the queue is open.

    `on_unlimited` is called when a limit is lifted: jobs passed over before are claimable then.
    """

    def __init__(
        self, on_change: Callable[[], None], on_unlimited: Callable[[], None] = lambda: None
    ) -> None:
        self._on_change = on_change
        self._on_unlimited = on_unlimited
        self.synced = False
        self.paused = False
        self.limited = False
        self.priority_ageing_seconds: int | None = None
        self.defaults = PolicyLayer()
        self.cancel_grace = DEFAULT_CANCEL_GRACE_SECONDS

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the list: the one queue, or nothing."""
        self._update(objects[0] if objects else {})
        self.synced = True
        self._on_change()

    def apply(self, event: WatchEvent) -> None:
        """Take a change of the queue."""
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
