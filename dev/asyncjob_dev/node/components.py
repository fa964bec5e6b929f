"""The node's programs beside the control plane.

Their configuration files, command lines and ready probes, and the pause image that every pod needs.
Inside the node the usual addresses hold; what a program would keep elsewhere on the machine is
given a place in the node's folder.
"""

import hashlib
import io
import json
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from asyncjob_dev.node.host import KUBELET_DIR, has_capability
from asyncjob_dev.node.plan import NodeNetwork, NodePaths, NodePlan
from asyncjob_dev.platforms import platform_name
from asyncjob_dev.process import ALWAYS_READY, ManagedProcess

Document = dict[str, Any]

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CNI_PLUGINS = "/usr/lib/cni"
PAUSE_IMAGE = "localhost/asyncjob-pause:1"
DOMAIN = "cluster.local"
CAP_SYS_RESOURCE = 24


def containerd_config(layout: NodePaths, *, may_raise_oom_priority: bool) -> str:
    """Return containerd's configuration."""
    # JSON's way to write text, lists and truth values is TOML's, too.
    root, folder = json.dumps(str(layout.containerd)), json.dumps(str(layout.config / "cni"))
    return f"""\
version = 3
root = {root}
state = "/run/containerd"
# They have folders or sockets of their own that nobody here needs.
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
# Without the right to lower it, every pod dies with "can't get final child's PID".
restrict_oom_score_adj = {json.dumps(not may_raise_oom_priority)}

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI_PLUGINS}"]
conf_dir = {folder}

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "runc"
Root = "/run/runc"
# The name of systemd's driver must not be there: cgroups are made by hand here.
SystemdCgroup = false
"""


def kubelet_config(layout: NodePaths, block: NodeNetwork) -> Document:
    """Return a KubeletConfiguration: whoever reaches the node's network may do everything."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(block.node),
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [str(block.node)],
        "clusterDomain": DOMAIN,
        "resolvConf": str(layout.config / "resolv.conf"),
        "podLogsDir": str(layout.pod_logs),
        "volumePluginDir": "/run/volume-plugins",
        "oomScoreAdj": 0,
        # The disk is the machine's, and so is the care for it.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "0%"},
        # The default of 10 s is for clusters of thousands of nodes.
        "nodeStatusUpdateFrequency": "2s",
    }


def kube_proxy_config(layout: NodePaths, block: NodeNetwork) -> Document:
    """Return a KubeProxyConfiguration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig)},
        "clusterCIDR": str(block.pods),
        "oomScoreAdj": 0,
        # The tables are the machine's, and their size is none of ours.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def cni_config(block: NodeNetwork) -> Document:
    """Return the network of pods: each at the end of a cable of its own, routed, not bridged.

    With a bridge, answers between two pods would bypass kube-proxy's rules unless the kernel's
    br_netfilter is there and switched on.
    """
    address = {
        "type": "host-local",
        "ranges": [[{"subnet": str(block.pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni-addresses",
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": address},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def corefile(layout: NodePaths, block: NodeNetwork) -> str:
    """Return CoreDNS's configuration: the cluster's names, and nothing beyond."""
    return (
        ".:53 {\n"
        f"    bind {block.node}\n"
        "    errors\n"
        "    ready 127.0.0.1:8181\n"
        f"    kubernetes {DOMAIN} in-addr.arpa {{\n"
        f"        kubeconfig {layout.kubeconfig}\n"
        "        pods insecure\n"
        "    }\n"
        "}\n"
    )


def pause_image(program: bytes, name: str) -> bytes:
    """Return an archive, as `docker save` writes them, of an image that runs a static program."""
    layer = _tar({"pause": program})
    described = json.dumps(_image_config(hashlib.sha256(layer).hexdigest())).encode()
    file = f"{hashlib.sha256(described).hexdigest()}.json"
    index = [{"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}]
    return _tar({"layer.tar": layer, file: described, "manifest.json": json.dumps(index).encode()})


def _image_config(layer: str) -> dict[str, Any]:
    system, _, processor = platform_name().partition("-")
    return {
        "os": system,
        "architecture": processor,
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


NODE_NAME = "node"
"""Of the Node object, in every cluster: there is only one."""
READY_SECONDS = 60.0


def write_configs(layout: NodePaths, plan: NodePlan) -> None:
    """Write every configuration file."""
    (layout.config / "cni").mkdir(exist_ok=True)
    may = has_capability(CAP_SYS_RESOURCE)
    texts = {
        "containerd.toml": containerd_config(layout, may_raise_oom_priority=may),
        "kubelet.yaml": yaml.safe_dump(kubelet_config(layout, plan.block)),
        "kube-proxy.yaml": yaml.safe_dump(kube_proxy_config(layout, plan.block)),
        "cni/pods.conflist": json.dumps(cni_config(plan.block)),
        "Corefile": corefile(layout, plan.block),
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
        return [program, "--address", CONTAINERD_SOCKET, "--namespace=k8s.io", *arguments]

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
        return probe.connect_ex(CONTAINERD_SOCKET) == 0
