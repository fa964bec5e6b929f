"""What the background process tells others about itself, in a file."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from asyncjob_dev.files import write_private


@dataclass(frozen=True)
class RunningPart:
    """One thing that runs; `pid` is None once it has ended."""

    name: str
    pid: int | None
    restarts: int = 0


@dataclass(frozen=True)
class EnvironmentState:
    """All of it. `port` is the API server's, to be taken again the next time.

    Without parts it is not complete: the environment is starting or stopping.
    """

    port: int
    app: str
    parts: list[RunningPart] = field(default_factory=list)
    workers: int = 0
    slots: int = 0
    queues: str = ""
    gateway_port: int = 0


def save_state(path: Path, state: EnvironmentState) -> None:
    """Write the file in one step."""
    write_private(path, json.dumps(asdict(state)))


def load_state(path: Path) -> EnvironmentState | None:
    """Read the file; None when there is none, or none that makes sense."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        parts = [RunningPart(**part) for part in found.pop("parts")]
        return EnvironmentState(**found, parts=parts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
