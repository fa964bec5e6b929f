"""The cluster around the simulated processes: namespace, accounts, pods, and a kubelet for them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import orjson

from asyncjob.names import COMPONENT_LABEL, QUEUE_LABEL, WORKER_COMPONENT
from asyncjob_simulation.apiserver import (
    ApiServer,
    MemoryAccess,
    Request,
    Response,
    pod_identity,
)
from asyncjob_simulation.apiserver.identities import account_identity
from asyncjob_simulation.apiserver.installation import install
from asyncjob_simulation.apiserver.timestamps import whole_seconds
from asyncjob_simulation.clocks import EPOCH, true_time
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.network import Connections, Network, short_path
from asyncjob_simulation.processes import Process
from asyncjob_simulation.story import Recorder

Object = dict[str, Any]

NAMESPACE: Final = "work"
WORKER: Final = "asyncjob-worker"
OPERATOR: Final = "asyncjob-operator"
GATEWAY: Final = "asyncjob-gateway"
_RBAC: Final = "rbac.authorization.k8s.io"
_ROLES: Final = (
    (WORKER, (WORKER, "asyncjob-worker-children")),
    (OPERATOR, (OPERATOR, f"{OPERATOR}-election")),
    (GATEWAY, (GATEWAY,)),
)
_CLUSTER_ROLES: Final = (
    (OPERATOR, f"{OPERATOR}-install"),
    (GATEWAY, "asyncjob-gateway-callers"),
)
TOKEN_SECONDS: Final = 120.0
"""How long a token of a pod is good here; an hour in truth."""


@cache
def _installed() -> ApiServer:
    """Return a server with all that is the same in every simulation."""
    server = ApiServer(lambda: EPOCH)
    install(server)
    server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    server.install(_accounts_and_bindings())
    return server


def new_server(loop: SimulationLoop, seed: int) -> ApiServer:
    """Return the API server of a simulation."""
    return ApiServer(lambda: true_time(loop), seed=seed, like=_installed())


def _accounts_and_bindings() -> Iterator[Object]:
    for account, roles in _ROLES:
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": NAMESPACE},
        }
        for role in roles:
            yield binding("RoleBinding", account, role)
    for account, role in _CLUSTER_ROLES:
        yield binding("ClusterRoleBinding", account, role)


def binding(kind: str, account: str, role: str, name: str = "") -> Object:
    """Return what gives an account a role."""
    scope = {"namespace": NAMESPACE} if kind == "RoleBinding" else {}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name or role, **scope},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


Main = Callable[["Container"], Coroutine[Any, Any, int]]
"""What a container runs; returns its exit code."""


@dataclass(eq=False)
class Container:
    """One start of a pod's container."""

    pod: "Pod"
    process: Process
    access: MemoryAccess
    on_terminate: Callable[[], None] = lambda: None
    """What SIGTERM does."""

    is_asked_to_end: bool = False
    """Whether it got SIGTERM before it had begun to end by itself."""


@dataclass(eq=False)
class Pod:
    """A pod of one replica, and the container that runs in it now."""

    name: str
    uid: str
    role: str
    container: Container | None = None
    restarts: int = 0
    is_gone: bool = False
    terminated_at: float = 0.0
    exit_code: int | None = None


@dataclass(eq=False)
class Replica:
    """One of the replicas of a deployment: a pod, and after it another."""

    name: str
    account: str
    main: Main
    queue: str = ""
    pod: Pod | None = None
    starts: int = 0
    is_wanted: bool = True

    @property
    def process(self) -> Process | None:
        """Return the process that runs now."""
        container = self.pod.container if self.pod else None
        return container.process if container and container.process.is_alive else None


@dataclass(eq=False)
class Cluster:
    """API server, network and machines; starts replicas again as kubelet and controllers do."""

    loop: SimulationLoop
    network: Network
    recorder: Recorder
    wall_offset: Callable[[str], float]
    """How far the wall clock of a process is off, by its name."""

    processes: dict[str, Process]
    """All that there ever were, by name."""

    on_end: Callable[[Container, int], None] = lambda *_: None
    """Called when a container has ended, with its exit code."""

    replicas: list[Replica] = field(default_factory=list)

    @property
    def server(self) -> ApiServer:
        """Return the API server."""
        return self.network.server

    def write(self, actor: str, method: str, path: str, body: Object | None = None) -> Response:
        """Send a request as an administrator, past the network."""
        request = Request(
            method,
            path,
            {"fieldManager": actor.partition("-")[0]},
            orjson.dumps(body) if body is not None else b"",
            "application/merge-patch+json" if method == "PATCH" else "application/json",
            token=self.server.admin_token,
        )
        response = self.server.handle(request)
        self.recorder.hash_bytes(response.body)
        about = path if method != "POST" else f"{path}/{self.recorder.name_in(response.body)}"
        self.recorder.note(actor, f"{method} {short_path(path)} -> {response.status}", about)
        self.network.on_answer(actor, request, response)
        return response

    # ---- replicas

    def add(self, replica: Replica) -> None:
        """Run a replica from now on."""
        self.replicas.append(replica)
        self._create_pod(replica)

    def remove(self, replica: Replica, grace: float) -> None:
        """Run a replica no more, as when a deployment is scaled down."""
        replica.is_wanted = False
        self.evict(replica, grace)

    def _create_pod(self, replica: Replica) -> None:
        if not replica.is_wanted:
            return
        replica.starts += 1
        name = f"{replica.name}-{replica.starts}"
        body = {
            "metadata": {
                "name": name,
                "labels": {
                    COMPONENT_LABEL: _component(replica.account),
                    **({QUEUE_LABEL: replica.queue} if replica.queue else {}),
                },
            },
            "spec": {
                "nodeName": f"node-{replica.name}",
                "serviceAccountName": replica.account,
                "terminationGracePeriodSeconds": 30,
                "containers": [{"name": _component(replica.account), "image": "asyncjob"}],
            },
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        made = orjson.loads(self.write("scheduler", "POST", path, body).body)
        replica.pod = Pod(name, made["metadata"]["uid"], replica.account)
        self._start(replica, replica.pod)

    def _start(self, replica: Replica, pod: Pod) -> None:
        if pod.is_gone or replica.pod is not pod:
            return
        number = pod.restarts
        name = f"{pod.name}/{number}" if number else pod.name
        process = Process(name, self.loop, wall_offset=self.wall_offset(pod.name))
        self.processes[name] = process
        access = self._access(process, pod)
        container = pod.container = Container(pod, process, access)
        self.recorder.note("kubelet", f"starts {process.name}", pod.name)
        process.on_death.append(lambda: self._ended(replica, pod, container, 137))
        self._report(pod)
        task = process.spawn(replica.main(container))
        task.add_done_callback(
            lambda done: self._returned(replica, pod, container, done), context=Context()
        )

    def _access(self, process: Process, pod: Pod) -> MemoryAccess:
        def token() -> str:
            if pod.role == WORKER:
                identity = pod_identity(NAMESPACE, WORKER, pod.name, pod.uid)
            else:
                identity = account_identity(NAMESPACE, pod.role)
            return self.server.tokens.issue(identity, namespace=NAMESPACE, seconds=TOKEN_SECONDS)

        return MemoryAccess(Connections(self.network, process), token(), NAMESPACE, renew=token)

    def _returned(
        self, replica: Replica, pod: Pod, container: Container, task: asyncio.Task[Any]
    ) -> None:
        if not container.process.is_alive:
            return
        error = None if task.cancelled() else task.exception()
        code = 1 if error or task.cancelled() else int(task.result())
        if error:
            self.recorder.note(container.process.name, f"fails: {error!r}")
        self._ended(replica, pod, container, code)
        container.process.kill()

    def _ended(self, replica: Replica, pod: Pod, container: Container, code: int) -> None:
        if pod.container is not container:
            return
        self.recorder.note("kubelet", f"{container.process.name} has ended with {code}", pod.name)
        self.on_end(container, code)
        pod.exit_code, pod.terminated_at = code, true_time(self.loop)
        pod.container = None
        pod.restarts += 1
        dice, where = self.network.chooser.dice, container.process.name
        self._later(dice.between(f"{where}|report", 0.05, 2.0), self._report, pod)
        if pod.is_gone or replica.pod is not pod:
            return
        self._later(dice.between(f"{where}|restart", 0.5, 6.0), self._start, replica, pod)

    def _report(self, pod: Pod) -> None:
        """Write the pod's status as the kubelet does."""
        if pod.is_gone:
            return
        state: Object = {"name": _component(pod.role), "restartCount": pod.restarts}
        running = pod.container is not None
        if running:
            state["state"] = {"running": {"startedAt": whole_seconds(true_time(self.loop))}}
        if pod.exit_code is not None:
            ended = {
                "exitCode": pod.exit_code,
                "finishedAt": whole_seconds(pod.terminated_at),
                "reason": "Completed" if pod.exit_code == 0 else "Error",
            }
            state["lastState" if running else "state"] = {"terminated": ended}
        status = {"status": {"phase": "Running", "containerStatuses": [state]}}
        self.write("kubelet", "PATCH", f"{_pod_path(pod)}/status", status)

    def evict(self, replica: Replica, grace: float) -> None:
        """Delete a pod in good order: SIGTERM, SIGKILL after the grace period, then another pod."""
        pod = replica.pod
        if pod is None or pod.is_gone:
            return
        self.write("controller", "DELETE", _pod_path(pod), {"gracePeriodSeconds": 30})
        replica.pod = None
        container = pod.container
        if container is not None:
            container.process.call(container.on_terminate)
        self._later(grace, self._remove, pod)
        pause = self.network.chooser.dice.between(f"{pod.name}|replaced", 0.5, 5.0)
        self._later(pause, self._create_pod, replica)

    def lose_node(self, replica: Replica, *, stays_alive: float, noticed_after: float) -> None:
        """Cut a pod's node off for good; its processes go on for a while, which nobody can see."""
        pod = replica.pod
        if pod is None or pod.is_gone:
            return
        replica.pod = None
        container = pod.container
        if container is not None:
            self.network.cut_until[container.process.name] = float("inf")
            self._later(stays_alive, container.process.kill)
        pod.is_gone = True  # no kubelet reports anything any more

        def forget() -> None:
            self.write("pod-gc", "DELETE", _pod_path(pod), {"gracePeriodSeconds": 0})
            self._create_pod(replica)

        self._later(noticed_after, forget)

    def _remove(self, pod: Pod) -> None:
        """End what still runs of a pod, report that, and remove it."""
        if pod.container is not None:
            pod.container.process.kill()
        self._report(pod)
        pod.is_gone = True
        self.write("kubelet", "DELETE", _pod_path(pod), {"gracePeriodSeconds": 0})

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self.loop.call_later(seconds, function, *args, context=Context())


def _component(account: str) -> str:
    return WORKER_COMPONENT if account == WORKER else account.removeprefix("asyncjob-")


def _pod_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.name}"
