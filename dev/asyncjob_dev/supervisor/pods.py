"""Runs worker processes, each with a Pod object and a token bound to it.

So that ownership is enforced in development as in a cluster: the API server sees a Pod's name and
uid in every request of a worker.
"""

import os
import signal
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Self

from asyncjob_dev.api import Api, Object, write_kubeconfig
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.process import ManagedProcess
from asyncjob_dev.supervisor import objects
from asyncjob_dev.supervisor.objects import Container
from asyncjob_dev.supervisor.reporter import PodIdentity, PodStatusReporter, TokenFile
from asyncjob_dev.supervisor.worker import DevWorker, PodRef, WorkerSpec

NODE = "dev-node"


class DevPods:
    """The workers of one namespace; a context manager that stops them.

    `api` must have the admin's rights; `folder` takes a subfolder per worker with its kubeconfig,
    token and log.
    """

    def __init__(
        self, api: Api, folder: Path, *, namespace: str = "default", node: str = NODE
    ) -> None:
        self.namespace = namespace
        self.workers: list[DevWorker] = []
        self._api = api
        self._folder = folder
        self._node = node
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._left: list[PodRef] = []

    def prepare(
        self, *, service_accounts: Iterable[str] = ("asyncjob-worker",), rbac: Iterable[Path] = ()
    ) -> None:
        """Make the namespace and the service accounts and apply the RBAC objects in the files."""
        wanted = [objects.build_namespace(self.namespace)]
        wanted += [objects.build_service_account(name, self.namespace) for name in service_accounts]
        for document in [*wanted, *objects.read_manifests(rbac)]:
            objects.apply_manifest(self._api, document, self.namespace)

    def end_orphans(self, keep: Collection[str]) -> None:
        """Say of the Pods that a killed supervisor has left that their processes died with it.

        So whoever waits for their leases need not. A part whose name is in `keep` takes its Pod
        over, as a container that is started again; the others are deleted by `stop`.
        """
        ours = ",".join(f"{key}={value}" for key, value in objects.MANAGED_BY.items())
        for left in self._api.get(self._pods, labelSelector=ours)["items"]:
            name, uid = left["metadata"]["name"], left["metadata"]["uid"]
            pod = PodRef(self._api, f"{self._pods}/{name}", uid)
            container = objects.read_container(left)
            if container is None:
                pod.delete(force=True)
                continue
            if container.ended is None:
                ended = container.end(-signal.SIGKILL, datetime.now(UTC))
                status = objects.build_pod_status(ended, restart=_restarts(left))
                patch = {"metadata": {"uid": uid}, "status": status}
                self._api.merge(f"{pod.path}/status", patch)
            if name not in keep:
                self._left.append(pod)

    def start(self, spec: WorkerSpec) -> DevWorker:
        """Create the Pod, put its token and kubeconfig in place, start the process."""
        folder = self._folder / spec.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        pod, before = self._create_pod(spec)
        with ExitStack() as on_failure:
            on_failure.callback(pod.delete, force=True)
            reporter = self._reporter(spec, pod, folder / "token")
            on_failure.callback(reporter.close)
            process = self._process(spec, pod, folder)
            worker = DevWorker(spec, pod, process, reporter, before)
            on_failure.pop_all()
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """Stop all workers at the same time: each has its grace from now on."""
        for worker in self.workers:
            worker.terminate()
        with ExitStack() as each:
            while self._left:
                each.callback(self._left.pop().delete, force=True)
            while self.workers:
                each.callback(self.workers.pop().stop)

    def _create_pod(self, spec: WorkerSpec) -> tuple[PodRef, Container | None]:
        """Return a new Pod, or one that was left behind with its container, which has ended."""
        path = f"{self._pods}/{spec.name}"
        wanted = objects.build_pod(
            spec.name,
            account=spec.service_account,
            node=self._node,
            labels=spec.labels,
            restart=spec.restart,
        )
        try:
            made = self._api.create(self._pods, wanted)
        except ApiStatusError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            old = self._api.get(path)
            before = objects.read_container(old)
            if before and before.ended and _restarts(old) and spec.restart:
                return PodRef(self._api, path, old["metadata"]["uid"]), before
            PodRef(self._api, path, old["metadata"]["uid"]).delete(force=True)
            made = self._api.create(self._pods, wanted)
        return PodRef(self._api, path, made["metadata"]["uid"]), None

    def _reporter(self, spec: WorkerSpec, pod: PodRef, token: Path) -> PodStatusReporter:
        who = PodIdentity(self.namespace, spec.service_account, spec.name, pod.uid)
        file = TokenFile(self._api, token, who, spec.token_seconds)
        return PodStatusReporter(self._api, pod.path, pod.uid, file, restart=spec.restart)

    def _process(self, spec: WorkerSpec, pod: PodRef, folder: Path) -> ManagedProcess:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(
            kubeconfig,
            url=spec.server or self._api.url,
            ca_file=self._api.ca_file,
            user={"tokenFile": str(folder / "token")},
            namespace=self.namespace,
            name=spec.name,
        )
        return ManagedProcess(
            spec.name,
            spec.argv,
            log_file=folder / "log",
            env=worker_environment(os.environ, spec, pod.uid, self.namespace, kubeconfig),
            cwd=spec.cwd,
            grace=spec.grace,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _restarts(pod: Object) -> bool:
    return bool(pod["spec"]["restartPolicy"] == "Always")


def worker_environment(
    ours: Mapping[str, str], spec: WorkerSpec, pod_uid: str, namespace: str, kubeconfig: Path
) -> dict[str, str]:
    """Return the environment of a worker, as the downward API would fill it."""
    pod = {"POD_NAME": spec.name, "POD_UID": pod_uid, "POD_NAMESPACE": namespace}
    return {**ours, **spec.env, **pod, "KUBECONFIG": str(kubeconfig)}
