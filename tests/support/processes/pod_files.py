"""What the kubelet puts into a worker's container: its service account, and who it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from support.processes.workers import WorkerNamespace

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class PodFiles:
    """For one container of one Pod."""

    env: Mapping[str, str]
    mounts: Mapping[str, Path]


def pod_files(ns: WorkerNamespace, name: str) -> PodFiles:
    """Make a Pod with a token bound to it."""
    identity = ns.identity(name)
    folder = ns.folder / f"account-{name}"
    folder.mkdir()
    user = yaml.safe_load(identity.kubeconfig.read_text())["users"][0]["user"]
    (folder / "token").write_text(user["token"])
    (folder / "ca.crt").write_bytes(Path(ns.api.ca_file).read_bytes())
    (folder / "namespace").write_text(ns.namespace)
    address = urlsplit(ns.api.url)
    env = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "POD_NAME": identity.holder.pod,
        "POD_UID": identity.holder.pod_uid,
    }
    return PodFiles(env, {MOUNT_PATH: folder})
