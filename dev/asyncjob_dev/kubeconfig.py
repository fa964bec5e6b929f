"""Kubeconfig files for people, for kubectl and for worker processes."""

import base64
from pathlib import Path

import yaml

from asyncjob_dev.files import write_private


def write_kubeconfig(
    path: Path,
    *,
    url: str,
    ca_file: Path,
    user: dict[str, str],
    namespace: str = "default",
    name: str = "asyncjob-dev",
) -> None:
    """Write a file with one context; `user` is `{"token": …}` or `{"tokenFile": …}`."""
    ca = base64.b64encode(ca_file.read_bytes()).decode("ascii")
    context = {"cluster": name, "user": name, "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False))
