"""What can be chosen about an environment, and where it keeps its files."""

from dataclasses import dataclass
from pathlib import Path

from asyncjob.names import DEFAULT_QUEUE
from asyncjob_dev.bundled import CHECKOUT
from asyncjob_dev.files import translate_folder_errors

ROOT = CHECKOUT
DEFAULT_FOLDER = ROOT / ".dev"


class EnvironmentPaths:
    """Paths below one folder."""

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        """The admin's kubeconfig."""
        self.logs = folder / "logs"
        """A link to the log of everything that runs."""
        self.bin = folder / "bin"
        """The kubectl that fits, for people without one."""
        self.control_plane = folder / "control-plane"
        """Data, keys and logs of the control plane."""
        self.pods = folder / "pods"
        """Kubeconfig, token and log of each part that runs as a Pod."""
        self.state = folder / "state.json"
        """What the background process says about itself."""
        self.lock = folder / "lock"
        """Held by the background process as long as it lives."""
        self.supervisor_log = self.logs / "supervisor.log"
        """What the background process has to say."""
        self.wiped = (
            *(self.control_plane, self.pods, self.logs, self.bin),
            *(self.kubeconfig, self.state),
        )
        """What is forgotten with the data; the rest of the folder belongs to the user."""

    def make(self) -> None:
        """Create the folders; raises `FolderUnusableError`."""
        with translate_folder_errors(self.folder):
            for folder in (self.logs, self.bin, self.pods):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)


DEFAULT_APP = "examples.handlers:app"


@dataclass(frozen=True, kw_only=True)
class EnvironmentSettings:
    """Choices with their defaults.

    `app` is what workers import, as module:attribute; `slots` is how many jobs each runs at a
    time. Each of the `queues`, separated by commas, gets so many workers. Without `api_port` or
    `gateway_port` a free port is taken. `restart` starts parts again that have ended, as a kubelet
    does. `grace` is how many seconds parts may take to end. `readable` is the folder that workers
    may read payloads and items from.
    """

    app: str = DEFAULT_APP
    workers: int = 2
    slots: int = 4
    queues: str = DEFAULT_QUEUE
    api_port: int | None = None
    gateway_port: int | None = None
    restart: bool = True
    grace: float = 10.0
    readable: str | None = None
