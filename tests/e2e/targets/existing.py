"""A cluster that is there already: the suite installs into it and cleans up behind itself."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from e2e.targets.errors import TargetError
from e2e.targets.target import Environment, Images

PREFIX = "ASYNCJOB_E2E_IMAGES"
TAG = "ASYNCJOB_E2E_TAG"
PUSH = "ASYNCJOB_E2E_PUSH"
POLICY = "ASYNCJOB_E2E_NETWORK_POLICY"


class ExistingTarget:
    """The cluster of KUBECONFIG, with images below a prefix that its nodes can pull from."""

    name = "existing"

    def __init__(self, environ: Environment) -> None:
        named = environ.get("KUBECONFIG", "")
        if not Path(named).is_file():
            raise TargetError("TARGET=existing needs KUBECONFIG, the file of an administrator")
        self._prefix = environ.get(PREFIX, "").rstrip("/")
        if not self._prefix:
            raise TargetError(
                f"TARGET=existing needs {PREFIX}, where the cluster's nodes find the images, such "
                f"as registry.example/asyncjob; with {PUSH}=1 they are pushed there first"
            )
        self.kubeconfig = Path(named)
        self.enforces_network_policy = environ.get(POLICY) == "1"
        self._tag = environ.get(TAG) or "e2e"
        self._push = environ.get(PUSH) == "1"

    def up(self) -> AbstractContextManager[object]:
        """Leave it as it is."""
        return nullcontext()

    def load(self, image: str, images: Images) -> str:
        """Push it, if that is wanted; else trust that it is there."""
        repository = image.rpartition("/")[2].partition(":")[0]
        reference = f"{self._prefix}/{repository}:{self._tag}"
        if self._push:
            images.engine.push(image, reference)
        return reference
