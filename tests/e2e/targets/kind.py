"""kind: a cluster in Docker's containers."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from asyncjob_dev.binaries import resolve
from asyncjob_dev.binaries.pins import KIND_TOOL
from e2e.targets.target import Environment, Images

UP_SECONDS = 600


class KindTarget:
    """A new cluster, called after this process."""

    name = "kind"
    enforces_network_policy = True
    """Its network plugin, kindnet, does."""

    def __init__(self, environ: Environment, folder: Path) -> None:
        self._environ = environ
        self._cluster = f"asyncjob-e2e-{os.getpid()}"
        self.kubeconfig = folder / "kind-kubeconfig"

    def up(self) -> AbstractContextManager[object]:
        """Create it, and delete it with all in it."""
        return self._up()

    def load(self, image: str, images: Images) -> str:
        """Import into its node, whatever engine has built the image."""
        packed = images.archive(image)
        self._kind("load", "image-archive", str(packed))
        packed.unlink()
        return image

    @contextmanager
    def _up(self) -> Iterator[None]:
        try:
            self._kind("create", "cluster", f"--kubeconfig={self.kubeconfig}", "--wait=180s")
            yield
        finally:
            self._kind("delete", "cluster", f"--kubeconfig={self.kubeconfig}")

    def _kind(self, *arguments: str) -> None:
        command = [str(resolve(KIND_TOOL).path), *arguments, f"--name={self._cluster}"]
        done = subprocess.run(
            command,
            env=dict(self._environ),
            capture_output=True,
            text=True,
            timeout=UP_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
