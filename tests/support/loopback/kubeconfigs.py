"""Kubeconfigs for servers that are none, or that ask for nothing."""

from pathlib import Path

import yaml


def plain_kubeconfig(path: Path, url: str, namespace: str = "tests") -> Path:
    """Write a kubeconfig for a server without TLS."""
    place = {"cluster": "test", "user": "test", "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {"token": "t"}}],
        "contexts": [{"name": "test", "context": place}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
