"""Configuration of the node's programs, as documents. Pure.

Inside the node the usual addresses hold: containerd answers in /run/containerd. What a program
would keep elsewhere on the machine is given a place in the node's folder.
"""

from typing import Any

from asyncjob_dev.node.layout import NodePaths
from asyncjob_dev.node.network import NodeNetwork

Document = dict[str, Any]

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CNI_PLUGINS = "/usr/lib/cni"
PAUSE_IMAGE = "localhost/asyncjob-pause:1"
DOMAIN = "cluster.local"
CAP_SYS_RESOURCE = 24
DISABLED_PLUGINS = ("io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri")
"""Plugins of containerd with folders or sockets of their own that nobody here needs."""


def containerd_config(layout: NodePaths, *, may_raise_oom_priority: bool) -> Document:
    """Return containerd's configuration, to be written as TOML."""
    runc = {
        "runtime_type": "io.containerd.runc.v2",
        # The name of systemd's driver must not be there: cgroups are made by hand here.
        "options": {"BinaryName": "runc", "Root": "/run/runc", "SystemdCgroup": False},
    }
    runtime = {
        # Without the right to lower it, every pod dies with "can't get final child's PID".
        "restrict_oom_score_adj": not may_raise_oom_priority,
        "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": runc}},
        "cni": {"bin_dirs": [CNI_PLUGINS], "conf_dir": str(layout.config / "cni")},
    }
    return {
        "version": 3,
        "root": str(layout.containerd),
        "state": "/run/containerd",
        "disabled_plugins": list(DISABLED_PLUGINS),
        "grpc": {"address": CONTAINERD_SOCKET},
        "plugins": {
            "io.containerd.cri.v1.runtime": runtime,
            "io.containerd.cri.v1.images": {"pinned_images": {"sandbox": PAUSE_IMAGE}},
        },
    }


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
