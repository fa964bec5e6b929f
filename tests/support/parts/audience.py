"""Jobs shown to a `JobEvaluator`, and what it puts into the work queue."""

from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob.names import CRON_JOB_UID_LABEL, PARENT_LABEL
from asyncjob_operator.core.now import Now
from support.objects.snapshots import at, raw
from support.parts.evaluation import evaluation


class Audience:
    """An evaluator whose clock is in the test's hands; `wanted` are UIDs with their lanes."""

    def __init__(self) -> None:
        self.now = 0.0
        self._version = 100
        made = self._made = evaluation(self.moment)
        self.observer, self.caches = made.evaluator, made.caches
        self.delaying_queue, self.queue_stats = made.delaying_queue, made.queue_stats

    def requeue(self, uid: str) -> None:
        """Take a job off the queue, where it keeps its lane, and let it be evaluated again."""
        self._made.job_queue.discard(uid)
        self.observer.evaluate(uid)

    def moment(self) -> Now:
        return at(self.now)

    @property
    def wanted(self) -> dict[str, str]:
        return self._made.queued

    def obj(self, name: str, **changes: Any) -> JsonObject:
        """Return a job of the newest version; `namespace`, `parent` and `cron` are metadata."""
        self._version += 1
        meta = {key: changes.pop(key, "") for key in ("namespace", "parent", "cron")}
        deleting = changes.pop("deleting", False)
        obj: Any = raw(name, **changes)
        obj["metadata"]["resourceVersion"] = str(self._version)
        obj["metadata"]["labels"] = {
            **({PARENT_LABEL: meta["parent"]} if meta["parent"] else {}),
            **({CRON_JOB_UID_LABEL: meta["cron"]} if meta["cron"] else {}),
        }
        if meta["namespace"]:
            obj["metadata"] |= {"namespace": meta["namespace"]}
        if deleting:
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        whole: JsonObject = obj
        return whole

    def see(self, name: str, **changes: Any) -> str:
        """Show a job as it changes; return its UID."""
        self.observer.on_update(self.obj(name, **changes), just_changed=True)
        return f"uid-{name}"

    def queue(self, name: str = "default", **spec: Any) -> None:
        """Show an AsyncQueue."""
        self._version += 1
        meta: JsonObject = {"namespace": "ns", "name": name, "resourceVersion": str(self._version)}
        self.caches.queues.on_update({"metadata": meta, "spec": spec})

    def catch_up(self) -> None:
        """Let everything be looked at that is due."""
        while due := self.delaying_queue.pop_due(self.now, 1000):
            for uid in due:
                self.observer.evaluate(uid)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything be looked at that is due then."""
        self.now += seconds
        self.catch_up()
