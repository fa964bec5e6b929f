"""Containers of an image under test, as strict as a cluster may run them: runc on its files.

The root file system is read-only but for /tmp, no capability is held, none can be gained, and the
shells are covered up. The network is the host's, so that a control plane on loopback is reached.
"""

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asyncjob_dev.images import Engine

NEEDED = ("buildah", "runc")
SHELLS = ("bash", "dash", "rbash", "sh")
NAMESPACES = ("ipc", "mount", "pid", "uts")
HIDDEN = ("/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/sys/firmware")
END_SECONDS = 30.0


def missing_programs() -> list[str]:
    """Return which programs these tests need and do not find."""
    return [name for name in NEEDED if shutil.which(name) is None]


@dataclass(frozen=True)
class Image:
    """An image, its configuration, and its files as the containers see them."""

    config: Mapping[str, Any]
    root: Path
    folder: Path

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a container to its end and return what it said."""
        with self.started(*arguments, **options) as container:
            return container.wait()

    @contextmanager
    def started(
        self,
        *arguments: str,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        mounts: Mapping[str, Path] | None = None,
    ) -> Iterator["Container"]:
        """Start a container; it is gone at the end."""
        bundle = self.folder / f"c-{uuid.uuid4().hex[:8]}"
        bundle.mkdir(parents=True)
        command = [
            *(self.config["Entrypoint"] if entrypoint is None else entrypoint),
            *(arguments or self.config.get("Cmd") or ()),
        ]
        named = [*self.config["Env"], *(f"{key}={value}" for key, value in (env or {}).items())]
        spec = _spec(self, command, named, mounts or {}, bundle)
        (bundle / "config.json").write_text(json.dumps(spec))
        container = Container(bundle)
        try:
            yield container.start()
        finally:
            container.remove()


@dataclass
class Container:
    """One container."""

    bundle: Path
    _process: subprocess.Popen[str] = field(init=False)

    @property
    def log_file(self) -> Path:
        """What it has written so far."""
        return self.bundle / "log"

    def start(self) -> "Container":
        """Start it in the background."""
        with self.log_file.open("w") as log:
            self._process = subprocess.Popen(
                ["runc", "--root", str(self.bundle / "state"), "run", self.bundle.name],
                cwd=self.bundle,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return self

    def log(self) -> str:
        """Return what it has written so far."""
        return self.log_file.read_text(errors="replace")

    def signal(self, name: str) -> None:
        """Send its first process a signal."""
        self._runc("kill", self.bundle.name, name)

    def processes(self) -> list[int]:
        """Return the processes in it, as the host numbers them."""
        done = self._runc("ps", "--format=json", self.bundle.name)
        found: list[int] = json.loads(done.stdout)
        return found

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end."""
        code = self._process.wait(END_SECONDS)
        return subprocess.CompletedProcess([], code, self.log(), "")

    def remove(self) -> None:
        """End it, if need be."""
        self._runc("delete", "--force", self.bundle.name)
        self._process.wait(END_SECONDS)

    def _runc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["runc", "--root", str(self.bundle / "state"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def image_of(engine: Engine, name: str, folder: Path) -> Iterator[Image]:
    """Lay out an image's files with buildah; they are put away at the end."""
    described = json.loads(engine.run("inspect", "--type=image", name))
    working = engine.run("from", "--pull-never", name).strip()
    try:
        root = Path(engine.run("mount", working).strip())
        yield Image(described["OCIv1"]["config"], root, folder)
    finally:
        engine.run("rm", working)


def _spec(
    image: Image,
    command: list[str],
    env: list[str],
    mounts: Mapping[str, Path],
    bundle: Path,
) -> dict[str, Any]:
    uid, _, gid = image.config["User"].partition(":")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": int(uid), "gid": int(gid)},
            "args": command,
            "env": env,
            "cwd": image.config["WorkingDir"],
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": str(image.root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            _memory("/dev", "mode=755"),
            _memory("/tmp", "mode=1777"),
            *(_bound(target, source) for target, source in mounts.items()),
            *_without_shells(image, bundle),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in NAMESPACES],
            "maskedPaths": list(HIDDEN),
        },
    }


def _without_shells(image: Image, bundle: Path) -> list[dict[str, Any]]:
    nothing = bundle / "no-shell"
    nothing.touch()
    places = [f"/usr/bin/{name}" for name in SHELLS]
    return [_bound(place, nothing) for place in places if (image.root / place[1:]).is_file()]


def _memory(target: str, options: str) -> dict[str, Any]:
    return {
        "destination": target,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", options, "size=65536k"],
    }


def _bound(target: str, source: Path) -> dict[str, Any]:
    return {
        "destination": target,
        "type": "bind",
        "source": str(source),
        "options": ["bind", "ro", "nosuid", "nodev"],
    }
