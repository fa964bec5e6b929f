"""Runs worker processes, each with a Pod object and a token bound to it.

So that ownership is enforced in development as in a cluster: the API server sees a Pod's name and
uid in every request of a worker.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Self

from asyncjob_dev.api import Api, Object, write_kubeconfig
from asyncjob_dev.errors import ApiError
from asyncjob_dev.process import ManagedProcess
from asyncjob_dev.supervisor import objects
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

    def prepare(
        self, *, service_accounts: Iterable[str] = ("asyncjob-worker",), rbac: Iterable[Path] = ()
    ) -> None:
        """Make the namespace and the service accounts and apply the RBAC objects in the files."""
        wanted = [objects.build_namespace(self.namespace)]
        wanted += [objects.build_service_account(name, self.namespace) for name in service_accounts]
        for document in [*wanted, *objects.read_manifests(rbac)]:
            objects.apply_manifest(self._api, document, self.namespace)

    def remove_leftovers(self) -> None:
        """Delete the Pods that a killed supervisor has left; their processes died with it."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        ours = ",".join(f"{key}={value}" for key, value in objects.MANAGED_BY.items())
        for left in self._api.get(pods, labelSelector=ours)["items"]:
            metadata = left["metadata"]
            PodRef(self._api, f"{pods}/{metadata['name']}", metadata["uid"]).delete(force=True)

    def start(self, spec: WorkerSpec) -> DevWorker:
        """Create the Pod, put its token and kubeconfig in place, start the process."""
        folder = self._folder / spec.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        pod = self._create_pod(spec)
        with ExitStack() as on_failure:
            on_failure.callback(pod.delete, force=True)
            reporter = self._reporter(spec, pod, folder / "token")
            on_failure.callback(reporter.close)
            process = self._process(spec, pod, folder)
            worker = DevWorker(spec, pod, process, reporter)
            on_failure.pop_all()
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """Stop all workers at the same time: each has its grace from now on."""
        for worker in self.workers:
            worker.terminate()
        with ExitStack() as each:
            while self.workers:
                each.callback(self.workers.pop().stop)

    def _create_pod(self, spec: WorkerSpec) -> PodRef:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        path = f"{pods}/{spec.name}"
        wanted = objects.build_pod(
            spec.name,
            account=spec.service_account,
            node=self._node,
            labels=spec.labels,
            restart=spec.restart,
        )
        try:
            made = self._api.create(pods, wanted)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            made = self._replace(pods, path, wanted)
        return PodRef(self._api, path, made["metadata"]["uid"])

    def _replace(self, pods: str, path: str, wanted: Object) -> Object:
        # A killed supervisor leaves Pods behind; their processes died with it.
        old = self._api.get(path)
        PodRef(self._api, path, old["metadata"]["uid"]).delete(force=True)
        return self._api.create(pods, wanted)

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


def worker_environment(
    ours: Mapping[str, str], spec: WorkerSpec, pod_uid: str, namespace: str, kubeconfig: Path
) -> dict[str, str]:
    """Return the environment of a worker, as the downward API would fill it."""
    pod = {"POD_NAME": spec.name, "POD_UID": pod_uid, "POD_NAMESPACE": namespace}
    return {**ours, **spec.env, **pod, "KUBECONFIG": str(kubeconfig)}
