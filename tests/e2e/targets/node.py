"""A node of its own on this machine: Linux, root, no Docker."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

from asyncjob_dev.node import Node
from e2e.targets.target import Environment, Images


class NodeTarget:
    """A new node, called after this process."""

    name = "node"
    enforces_network_policy = False
    """Nothing here reads NetworkPolicies: kube-proxy does not, and the pods' network is plain."""

    def __init__(self, environ: Environment) -> None:
        self._node = Node(f"e2e-{os.getpid()}", environ)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._node.kubeconfig

    def up(self) -> AbstractContextManager[object]:
        """Start it; everything goes with it."""
        return self._node

    def load(self, image: str, images: Images) -> str:
        """Import into containerd."""
        packed = images.archive(image)
        self._node.load(packed)
        packed.unlink()
        return image
