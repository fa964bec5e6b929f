"""What a kubelet says about the one container of a worker Pod. Pure: the time is an argument."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

CONTAINER = "worker"
RUNTIME = "asyncjob-dev"
SIGNAL_OFFSET = 128


@dataclass(frozen=True)
class ContainerTermination:
    """How a container ended."""

    exit_code: int
    reason: str
    started: datetime
    finished: datetime
    container_id: str

    def as_state(self) -> dict[str, Any]:
        """Return the API's ContainerState."""
        return {
            "terminated": {
                "exitCode": self.exit_code,
                "reason": self.reason,
                "startedAt": rfc3339(self.started),
                "finishedAt": rfc3339(self.finished),
                "containerID": self.container_id,
            }
        }


@dataclass(frozen=True)
class Container:
    """The container since its newest start; `ended` is None while it runs."""

    image: str
    container_id: str
    started: datetime
    restarts: int = 0
    ended: ContainerTermination | None = None
    before: ContainerTermination | None = None

    def end(self, returncode: int, now: datetime, reason: str = "") -> "Container":
        """Return it after its process ended (negative: by which signal)."""
        code = exit_code(returncode)
        why = reason or ("Error" if code else "Completed")
        return replace(
            self, ended=ContainerTermination(code, why, self.started, now, self.container_id)
        )

    def restart(self, container_id: str, now: datetime) -> "Container":
        """Return it after it was started again in the same Pod."""
        return replace(
            self,
            container_id=container_id,
            started=now,
            restarts=self.restarts + 1,
            ended=None,
            before=self.ended,
        )

    def as_status(self) -> dict[str, Any]:
        """Return the API's ContainerStatus."""
        running = {"running": {"startedAt": rfc3339(self.started)}}
        return {
            "name": CONTAINER,
            "image": self.image,
            "imageID": "",
            "containerID": self.container_id,
            "ready": self.ended is None,
            "started": self.ended is None,
            "restartCount": self.restarts,
            "state": self.ended.as_state() if self.ended else running,
            "lastState": self.before.as_state() if self.before else {},
        }


def exit_code(returncode: int) -> int:
    """Return 137 for SIGKILL and so on, as a kubelet reports it."""
    return SIGNAL_OFFSET - returncode if returncode < 0 else returncode


def container_id(pid: int, restarts: int) -> str:
    """Return an id no other start in this Pod has."""
    return f"{RUNTIME}://{pid}-{restarts}"


def rfc3339(moment: datetime) -> str:
    """Return the API's form of a time, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
