"""Builds a pinned tool with the Go compiler of this machine.

go.sum is what makes this safe: `-mod=readonly` lets the compiler use nothing that is not listed
there with its checksum.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from asyncjob_dev.binaries.pins import Pin
from asyncjob_dev.errors import BuildError, DiskFullError, GoMissingError, GoTooOldError
from asyncjob_dev.process import bound_command
from asyncjob_dev.progress import Progress

TAIL_LINES = 25
# A cold build on two cores; Go's own cache makes the second one a matter of seconds.
COLD_SECONDS = {
    "etcd": 25,
    "kube-apiserver": 210,
    "kube-controller-manager": 60,
    "kubectl": 25,
    "kubelet": 180,
    "coredns": 90,
    "helm": 110,
    "prometheus": 350,
}
KUBERNETES_PREFIX = "k8s.io/kubernetes/"
VERSION_VARIABLES = {
    "github.com/containerd/containerd/v2/": "github.com/containerd/containerd/v2/version.Version",
    "helm.sh/helm/v4/": "helm.sh/helm/v4/internal/version.version",
}
"""The variable that holds the version, by the start of a package's path."""
# The first Go that switches to another toolchain by itself.
SWITCHES_SINCE = (1, 21)


def build(pin: Pin, output: Path, environ: Mapping[str, str], tried: Sequence[str]) -> None:
    """Compile the tool to `output`; `tried` says what was looked at before, for the error."""
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise GoMissingError(pin.tool, _short(pin.go), tried)
    check_compiler(pin, go, environ)
    with Progress(progress_text(pin)):
        done = subprocess.run(
            bound_command([go, *arguments(pin, output)]),
            cwd=pin.module_dir,
            env={**environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise _failure(pin, output, done.returncode, done.stdout + done.stderr)


def arguments(pin: Pin, output: Path) -> list[str]:
    """Return what to pass to `go`."""
    flags = ["-mod=readonly", "-trimpath", "-ldflags", " ".join(["-s", "-w", *_version_flags(pin)])]
    return ["build", *flags, "-o", str(output), pin.package]


def progress_text(pin: Pin) -> str:
    """Return the line shown while it builds."""
    seconds = COLD_SECONDS.get(pin.tool, 60)
    minutes = max(1, round(seconds / 60))
    took = f"about {minutes} minute{'s' if minutes > 1 else ''} the first time"
    return f"building {pin.tool} {pin.version} from source, {took}"


def check_compiler(pin: Pin, go: str, environ: Mapping[str, str]) -> None:
    """Raise `GoTooOldError` unless this Go is new enough or may fetch one that is."""
    has = _ask(go, "GOVERSION", {**environ, "GOTOOLCHAIN": "local"}).removeprefix("go")
    toolchain = _ask(go, "GOTOOLCHAIN", environ) or "local"
    may_switch = _numbers(has) >= SWITCHES_SINCE and not toolchain.startswith("local")
    if _numbers(has) < _numbers(pin.go) and not may_switch:
        raise GoTooOldError(pin.tool, _short(pin.go), has, toolchain)


def _version_flags(pin: Pin) -> list[str]:
    """Return the linker's flags without which a program reports no version, or v0.0.0."""
    if pin.package.startswith(KUBERNETES_PREFIX):
        return _kubernetes_version_flags(pin.version)
    variables = [name for start, name in VERSION_VARIABLES.items() if pin.package.startswith(start)]
    return [f"-X {name}={pin.version}" for name in variables]


def _kubernetes_version_flags(version: str) -> list[str]:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return [f"-X k8s.io/component-base/version.{name}={text}" for name, text in values.items()]


def _ask(go: str, variable: str, environ: Mapping[str, str]) -> str:
    # Outside any module, or the answer would already be that of a switched toolchain.
    done = subprocess.run(
        [go, "env", variable],
        cwd=Path(os.sep),
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _failure(pin: Pin, output: Path, returncode: int, said: str) -> BuildError | DiskFullError:
    if "no space left on device" in said:
        return DiskFullError(f"{output.parent}, GOCACHE or TMPDIR")
    end = "\n".join(f"  {line}" for line in said.splitlines()[-TAIL_LINES:])
    return BuildError(f"{pin.tool} {pin.version}", returncode, end)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _short(go: str) -> str:
    return ".".join(go.split(".")[:2])
