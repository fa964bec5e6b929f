"""What the tool modules in `dev/tools` pin.

They pin packages, versions, and the Go they need. Each tool has a Go module of its own, so that the
dependencies of one cannot move another's; its go.mod and go.sum are the only place where a version
is written down.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.bundled import CHECKOUT, bundled
from asyncjob_dev.errors import PinUnreadableError

TOOLS_DIR = bundled("tools")
VERSIONS_DIR = CHECKOUT / "dev" / "kubernetes"
"""Has a folder such as `1.32` for each other Kubernetes, with modules as in `dev/tools`."""

SERVER_TOOLS = ("etcd", "kube-apiserver", "kubectl")
"""What the development server needs."""
TOOLS = (*SERVER_TOOLS, "kube-controller-manager")
"""Tests need this one besides."""
NODE_TOOLS = (
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "coredns",
    "helm",
    "pause",
)
"""What a node needs besides, each in a module of its own as well."""
KIND_TOOL = "kind"
"""Makes clusters of containers, where Docker runs."""
OWN_VERSION = "v0.0.0"
"""The version of a program whose source is in its module's folder."""
MONITORING_TOOLS = ("prometheus", "promtool")
"""Only for the tests of alerts and dashboard."""


@dataclass(frozen=True)
class Pin:
    """One tool as its module pins it."""

    tool: str
    package: str
    version: str
    go: str
    module_dir: Path
    digest: str

    @property
    def minor(self) -> int:
        """The 36 of v1.36.3."""
        return int(self.version.split(".")[1])


def read_pin(tool: str, tools_dir: Path = TOOLS_DIR) -> Pin:
    """Read the module of `tool`; raises `PinUnreadableError`."""
    module_dir = tools_dir / tool
    try:
        text = (module_dir / "go.mod").read_text(encoding="utf-8")
        sums = (module_dir / "go.sum").read_text(encoding="utf-8")
        sources = sorted(path for path in module_dir.iterdir() if path.suffix == ".go")
        own = [path.read_text(encoding="utf-8") for path in sources]
    except OSError as error:
        raise PinUnreadableError(module_dir, error.strerror or "cannot be read") from error
    package = _directive("tool", text, module_dir)
    return Pin(
        tool=tool,
        package=package,
        version=_version(package, text, module_dir),
        go=_directive("go", text, module_dir),
        module_dir=module_dir,
        digest=hashlib.sha256("\0".join([text, sums, *own]).encode()).hexdigest()[:12],
    )


def _directive(word: str, text: str, where: Path) -> str:
    found = re.search(rf"^{word}\s+(\S+)$", text, re.MULTILINE)
    if found is None:
        raise PinUnreadableError(where / "go.mod", f"no `{word}` directive")
    return found[1]


def _version(package: str, text: str, where: Path) -> str:
    if f"module {package}\n" in text:
        return OWN_VERSION
    required: Mapping[str, str] = dict(
        re.findall(r"^\s*(?:require\s+)?(\S+)\s+(v\d\S*)", text, re.MULTILINE)
    )
    owners = [module for module in required if f"{package}/".startswith(f"{module}/")]
    if not owners:
        raise PinUnreadableError(where / "go.mod", f"no required module provides {package}")
    return required[max(owners, key=len)]
