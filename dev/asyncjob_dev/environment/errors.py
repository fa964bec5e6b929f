"""What can go wrong with an environment as a whole."""

from collections.abc import Iterable
from pathlib import Path

from asyncjob_dev.errors import DevError


class EnvironmentInUseError(DevError):
    """Another process runs the environment of this folder."""

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(f"{folder} is in use by process {pid}; `make down` stops it.")
        self.pid = pid


class StartFailedError(DevError):
    """The background process could not bring the environment up; the message is its own."""


class OtherSettingsError(DevError):
    """The environment runs, but not as was asked."""

    def __init__(self, pid: int, differences: Iterable[str]) -> None:
        super().__init__(
            f"already up (process {pid}), and the given settings were not applied: "
            f"{'; '.join(differences)}. `make down` first, then `make up` with them; jobs are kept."
        )


class StopFailedError(DevError):
    """The background process did not end, not even when killed."""


class ManifestsMissingError(DevError):
    """A folder whose manifests the environment applies has none."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no manifests in {folder}: run from a complete checkout.")
