"""What a test may know of the cluster it runs on."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from asyncjob_dev.images import Engine


@dataclass(frozen=True)
class Images:
    """What builds the images here, and the folder in which archives of them may lie."""

    engine: Engine
    folder: Path

    def archive(self, image: str) -> Path:
        """Write an image to a file, as `docker save` does."""
        packed = self.folder / f"{image.replace('/', '_').replace(':', '_')}.tar"
        self.engine.save(image, packed)
        return packed


class Target(Protocol):
    """A cluster, up as long as its context is entered.

    Tests talk to it with kubectl and helm alone: `kubectl port-forward` reaches Services
    everywhere, while their addresses can be reached only on `node`.
    """

    @property
    def name(self) -> str:
        """How `make e2e TARGET=…` calls it."""

    @property
    def kubeconfig(self) -> Path:
        """An administrator's; good once the cluster is up."""

    @property
    def enforces_network_policy(self) -> bool:
        """Whether a NetworkPolicy blocks anything here."""

    def up(self) -> AbstractContextManager[object]:
        """Bring it up; taken down at the end, if it is ours."""

    def load(self, image: str, images: Images) -> str:
        """Make an image of the engine known to the cluster; returns what pods have to call it."""


Environment = Mapping[str, str]
