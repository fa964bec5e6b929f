"""The node's programs beside the control plane: their files, command lines and ready probes."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import yaml

from asyncjob_dev.node import configs, toml
from asyncjob_dev.node.layout import NodePaths
from asyncjob_dev.node.plan import NodePlan
from asyncjob_dev.node.surroundings import KUBELET_DIR, has_capability
from asyncjob_dev.process import ALWAYS_READY, ManagedProcess

NODE_NAME = "node"
"""Of the Node object, in every cluster: there is only one."""
READY_SECONDS = 60.0


def write_configs(layout: NodePaths, plan: NodePlan) -> None:
    """Write every configuration file."""
    (layout.config / "cni").mkdir(exist_ok=True)
    may = has_capability(configs.CAP_SYS_RESOURCE)
    texts = {
        "containerd.toml": toml.to_toml(
            configs.containerd_config(layout, may_raise_oom_priority=may)
        ),
        "kubelet.yaml": yaml.safe_dump(configs.kubelet_config(layout, plan.block)),
        "kube-proxy.yaml": yaml.safe_dump(configs.kube_proxy_config(layout, plan.block)),
        "cni/pods.conflist": json.dumps(configs.cni_config(plan.block)),
        "Corefile": configs.corefile(layout, plan.block),
        "resolv.conf": "",
    }
    for name, text in texts.items():
        (layout.config / name).write_text(text, encoding="utf-8")


class NodeComponents:
    """Makes the processes, none of them started."""

    def __init__(self, layout: NodePaths, plan: NodePlan) -> None:
        self._layout = layout
        self._plan = plan

    def containerd(self) -> ManagedProcess:
        """Return the container runtime."""
        return self._process(
            "containerd", self._config("containerd.toml"), ready=_containerd_answers
        )

    def scheduler(self) -> ManagedProcess:
        """Return the scheduler, which listens nowhere."""
        flags = ["--leader-elect=false", "--secure-port=0"]
        return self._process("kube-scheduler", f"--kubeconfig={self._layout.kubeconfig}", *flags)

    def kubelet(self) -> ManagedProcess:
        """Return the kubelet."""
        return self._process(
            "kubelet",
            self._config("kubelet.yaml"),
            f"--kubeconfig={self._layout.kubeconfig}",
            f"--root-dir={KUBELET_DIR}",
            f"--cert-dir={KUBELET_DIR / 'pki'}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={self._plan.block.node}",
        )

    def proxy(self) -> ManagedProcess:
        """Return what makes Services' addresses work."""
        config = self._config("kube-proxy.yaml")
        return self._process("kube-proxy", config, f"--hostname-override={NODE_NAME}")

    def dns(self) -> ManagedProcess:
        """Return what makes their names work."""
        return self._process("coredns", f"-conf={self._layout.config / 'Corefile'}")

    def ctr(self, *arguments: str) -> list[str]:
        """Return the command line of containerd's client, among what the kubelet sees."""
        program = self._plan.programs["ctr"]
        return [program, "--address", configs.CONTAINERD_SOCKET, "--namespace=k8s.io", *arguments]

    def _config(self, name: str) -> str:
        return f"--config={self._layout.config / name}"

    def _process(
        self, name: str, *flags: str, ready: Callable[[], bool] = ALWAYS_READY
    ) -> ManagedProcess:
        return ManagedProcess(
            name,
            [self._plan.programs[name], *flags],
            log_file=self._layout.log(name),
            # containerd looks for its shim on PATH.
            env={**os.environ, "PATH": f"{self._shim_folder}:{os.environ['PATH']}"},
            ready=ready,
            ready_within=READY_SECONDS,
        )

    @property
    def _shim_folder(self) -> Path:
        return Path(self._plan.programs["containerd-shim-runc-v2"]).parent


def _containerd_answers() -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(configs.CONTAINERD_SOCKET) == 0
