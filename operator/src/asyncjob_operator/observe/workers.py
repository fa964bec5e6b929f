"""Workers as the operator sees them: their pods, and the Leases they announce themselves in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.view import JobView
from asyncjob.names import POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from asyncjob_operator.core.death import NOBODY, UNSEEN, Holder
from asyncjob_operator.core.pods import PodView, read_pod, same
from asyncjob_operator.observe.versions import Versions

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Announced:
    """The newest process of a pod; `since`: known, with the pod in sight, monotonic seconds."""

    pod_uid: str
    worker: str
    since: float


NOTHING: Final = Announced("", "", UNSEEN)


class Workers:
    """Pods and announcements; `changed` is called with a pod that something is new of.

    It is told the pod's namespace and UID.

    `pods_known` is False until pods have been listed, and stays so without permission to.
    """

    def __init__(self, clock: Callable[[], float], changed: Callable[[str, str], None]) -> None:
        self.pods_known = False
        self._clock = clock
        self._changed = changed
        self._pods: dict[Name, PodView] = {}
        self._ending_seen_at: dict[Name, float] = {}
        self._newest: dict[Name, Announced] = {}
        self._pod_versions: Versions[Name] = Versions()
        self._lease_versions: Versions[Name] = Versions()

    def holder(self, job: JobView) -> Holder:
        """Return what is known of the pod that holds the job's lease."""
        lease = job.lease
        if lease is None:
            return NOBODY
        name = (job.namespace, lease.holder)
        pod = self._pods.get(name)
        newest = self._newest.get(name, NOTHING)
        own = newest if newest.pod_uid == lease.holder_uid else NOTHING
        return Holder(
            pods_known=self.pods_known,
            pod=pod if pod and pod.uid == lease.holder_uid else None,
            newest=own.worker,
            newest_since=own.since,
            ending_seen_at=self._ending_seen_at.get(name, 0.0),
        )

    def pods_unseen(self) -> None:
        """Take that pods are listed anew, as at a start or after a break of their watch.

        What is seen then may have happened long ago: before an announcement that is known already.
        """
        now = self._clock()
        self._newest = {name: replace(one, since=now) for name, one in self._newest.items()}

    def saw_pod(self, obj: JsonObject) -> None:
        """Take a pod as it was then."""
        pod = read_pod(obj)
        name = (pod.namespace, pod.name)
        if not self._pod_versions.is_news(name, text(child(obj, "metadata"), "resourceVersion")):
            return
        before = self._pods.get(name)
        if pod == before:
            return
        self._pods[name] = pod
        if pod.ending and not (before and before.ending and same(before.ending, pod.ending)):
            self._ending_seen_at[name] = self._clock()
        if before and before.uid != pod.uid:
            self._changed(pod.namespace, before.uid)
        self._changed(pod.namespace, pod.uid)

    def lost_pod(self, namespace: str, name: str) -> None:
        """Take that there is no such pod any more."""
        self._pod_versions.gone((namespace, name))
        self._ending_seen_at.pop((namespace, name), None)
        before = self._pods.pop((namespace, name), None)
        if before:
            self._changed(namespace, before.uid)

    def saw_lease(self, obj: JsonObject) -> None:
        """Take an announcement; renewals of the same process are no news."""
        meta = child(obj, "metadata")
        name = (text(meta, "namespace"), pod_of(text(meta, "name")))
        if not self._lease_versions.is_news(name, text(meta, "resourceVersion")):
            return
        pod_uid = text(child(meta, "annotations"), POD_UID_ANNOTATION)
        worker = text(child(obj, "spec"), "holderIdentity")
        before = self._newest.get(name, NOTHING)
        if (before.pod_uid, before.worker) != (pod_uid, worker):
            self._newest[name] = Announced(pod_uid, worker, self._clock())
            self._changed(name[0], pod_uid)

    def lost_lease(self, namespace: str, lease: str) -> None:
        """Take that an announcement is gone; that proves nothing."""
        self._lease_versions.gone((namespace, pod_of(lease)))
        self._newest.pop((namespace, pod_of(lease)), None)

    def pods_in(self, namespace: str | None) -> list[Name]:
        """Return the names of the known pods of one namespace, or of all."""
        return [name for name in self._pods if namespace in (None, name[0])]

    def leases_in(self, namespace: str | None) -> list[Name]:
        """Return the pods' names of the known announcements of one namespace, or of all."""
        return [name for name in self._newest if namespace in (None, name[0])]


def pod_of(lease: str) -> str:
    """Return the name of the pod that a worker's Lease is about."""
    return lease.removeprefix(WORKER_LEASE_PREFIX)
