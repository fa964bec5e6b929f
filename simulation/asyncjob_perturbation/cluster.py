"""One API server for all cases, a namespace for each, and one watch that sees them all."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from asyncjob.audit.recorder import RECORDED
from asyncjob.errors import AlreadyExistsError, UnknownOutcomeError
from asyncjob.kube import KubeSession, load_access
from asyncjob.kube.informer import IncrementalEventHandler, WatchObserver, run_informer
from asyncjob.kube.watch import WatchEvent
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT, collection_path
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment.components import install
from asyncjob_dev.environment.readiness import await_enforcement
from asyncjob_dev.supervisor import objects
from asyncjob_perturbation.answer_times import AnswerTimes
from asyncjob_perturbation.lagging import lagging_apiserver
from asyncjob_perturbation.plan import LAG_SECONDS

Object = dict[str, Any]

HOME: Final = "asyncjob-system"
"""Namespace of the accounts of operator and gateway, which have their roles everywhere."""

WORKER_ACCOUNT: Final = "asyncjob-worker"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_ROLES: Final = {
    "asyncjob-operator": ("asyncjob-operator", "asyncjob-operator-install"),
    "asyncjob-gateway": ("asyncjob-gateway", "asyncjob-gateway-callers"),
}
_GRANTED_SECONDS: Final = 20.0
_STARTS: Final = 2
_MORE_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object, as a watch showed it."""

    resource: str
    event: str
    obj: Object
    at: datetime


@dataclass
class Seen:
    """What was seen of one namespace."""

    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: defaultdict(dict))
    """Resource → name → newest version."""

    versions: list[Version] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class _Watcher(IncrementalEventHandler):
    """Sorts what one watch shows by namespace."""

    def __init__(self, resource: str, seen: Mapping[str, Seen]) -> None:
        self._resource = resource
        self._seen = seen

    def list_begins(self) -> None:
        pass

    def list_object(self, obj: Any) -> None:
        self._take("LISTED", obj)

    def list_ends(self, version: str) -> None:
        pass

    def apply(self, event: WatchEvent) -> None:
        self._take(event.type, event.object)

    def _take(self, event: str, obj: Any) -> None:
        metadata = obj["metadata"]
        seen = self._seen[metadata["namespace"]]
        seen.versions.append(Version(self._resource, event, obj, datetime.now(UTC)))
        if event == "DELETED":
            seen.objects[self._resource].pop(metadata["name"], None)
        else:
            seen.objects[self._resource][metadata["name"]] = obj
        seen.changed.set()


class Cluster:
    """The API server, seen by its admin."""

    def __init__(self, plane: ControlPlane, session: KubeSession, folder: Path) -> None:
        self.url = plane.url
        self.lagging_url = ""
        """Where the API server is that lags, if there is one."""

        self.token = plane.admin_token
        self.ca_file = plane.ca_file
        self.trust = ssl.create_default_context(cafile=plane.ca_file)
        self.session = session
        self.folder = folder
        self.seen: dict[str, Seen] = defaultdict(Seen)
        self.starts = asyncio.Semaphore(_STARTS)
        """Of the parts of one case: they take most of its CPU time."""

        self.answer_times = AnswerTimes(partial(session.get, "/version"))
        self.tokens: dict[str, str] = {}
        """Tokens of operator and gateway, by account."""

    async def prepare(self) -> None:
        """Make the accounts of operator and gateway."""
        with suppress(Exception):
            await self._create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        for account, roles in _ROLES.items():
            accounts = f"/api/v1/namespaces/{HOME}/serviceaccounts"
            await self._create(accounts, {"metadata": {"name": account}})
            for role in roles:
                await self._create(f"{_RBAC}/clusterrolebindings", _binding(role, account, HOME))
            self.tokens[account] = await self._token(HOME, account, {})
        await self._until_allowed(HOME, "asyncjob-gateway", "default", "create", "asyncjobs")

    async def make_namespace(self, name: str) -> None:
        """Make a namespace in which workers may work."""
        await self._create("/api/v1/namespaces", {"metadata": {"name": name}})
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        await self._create(accounts, {"metadata": {"name": WORKER_ACCOUNT}})
        bindings = f"{_RBAC}/namespaces/{name}/rolebindings"
        await self._create(bindings, _binding(WORKER_ACCOUNT, WORKER_ACCOUNT, name))
        await self._until_allowed(name, WORKER_ACCOUNT, name, "list", "asyncjobs")

    async def make_pod(self, namespace: str, name: str) -> tuple[str, str]:
        """Make a worker's Pod, and return its UID and a token that is bound to it."""
        labels = {COMPONENT_LABEL: WORKER_COMPONENT}
        body = objects.build_pod(
            name, account=WORKER_ACCOUNT, node="nowhere", labels=labels, restart=True
        )
        pod = await self._create(f"/api/v1/namespaces/{namespace}/pods", body)
        uid = str(pod["metadata"]["uid"])
        bound = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}}
        return uid, await self._token(namespace, WORKER_ACCOUNT, bound)

    async def report_pod(self, namespace: str, name: str, container: objects.Container) -> None:
        """Write the Pod's status, as a kubelet would."""
        status = objects.build_pod_status(container, restart=True)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        await self.session.merge_patch(path, {"status": status})

    def write_kubeconfig(self, path: Path, url: str, token: str, namespace: str) -> None:
        """Write the kubeconfig of a part that finds the API server at `url`."""
        user = {"token": token}
        write_kubeconfig(path, url=url, ca_file=self.ca_file, user=user, namespace=namespace)

    async def watch_all(self, watching: asyncio.Event) -> None:
        """See every version of every job, queue, cron job and array, until cancelled."""
        begun: set[str] = set()

        class Beginning(WatchObserver):
            def __init__(self, resource: str) -> None:
                self._resource = resource

            def watch_opened(self) -> None:
                begun.add(self._resource)
                if len(begun) == len(RECORDED):
                    watching.set()

        await asyncio.gather(
            *(
                run_informer(
                    self.session,
                    collection_path(None, resource),
                    _Watcher(resource, self.seen),
                    observer=Beginning(resource),
                )
                for resource in RECORDED
            )
        )

    async def _create(self, path: str, body: Object) -> Object:
        """Create an object; an API server that is slow to answer is asked again."""
        for _ in range(_MORE_TRIES):
            try:
                return dict(await self.session.create(path, body))
            except UnknownOutcomeError:
                continue
            except AlreadyExistsError:
                return dict(await self.session.get(f"{path}/{body['metadata']['name']}"))
        return dict(await self.session.create(path, body))

    async def _token(self, namespace: str, account: str, spec: Object) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        made: Any = await self._create(path, {"spec": {**spec, "expirationSeconds": 36_000}})
        return str(made["status"]["token"])

    async def _until_allowed(
        self, home: str, account: str, namespace: str, verb: str, resource: str
    ) -> None:
        """Wait until the authorizer has seen a binding."""
        spec = {
            "user": f"system:serviceaccount:{home}:{account}",
            "resourceAttributes": {
                "namespace": namespace,
                "group": "asyncjob.dev",
                "resource": resource,
                "verb": verb,
            },
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        async with asyncio.timeout(_GRANTED_SECONDS):
            while True:
                review: Any = await self._create(path, {"spec": spec})
                if review["status"]["allowed"]:
                    return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def running_cluster(
    plane: ControlPlane, folder: Path, *, lags: bool = False
) -> AsyncIterator[Cluster]:
    """Yield a cluster on a control plane, with everything installed in it.

    If it `lags`, it has an API server beside the other whose view is some seconds old.
    """
    install(plane)
    access = await load_access(str(plane.kubeconfig))
    async with (
        KubeSession(access, field_manager="perturbation", connections=32) as session,
        lagging_apiserver(plane, LAG_SECONDS) if lags else nullcontext("") as lagging_url,
    ):
        cluster = Cluster(plane, session, folder)
        cluster.lagging_url = lagging_url
        await cluster.prepare()
        await cluster.make_namespace("enforcement")
        await asyncio.to_thread(await_enforcement, plane.api, WORKER_ACCOUNT, "enforcement")
        watching = asyncio.Event()
        tasks = [
            asyncio.create_task(cluster.watch_all(watching)),
            asyncio.create_task(cluster.answer_times.measure()),
        ]
        try:
            await watching.wait()
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _binding(role: str, account: str, namespace: str) -> Object:
    return {
        "metadata": {"name": f"{role}-in-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
