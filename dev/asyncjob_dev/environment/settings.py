"""What can be chosen about an environment."""

from dataclasses import dataclass

DEFAULT_APP = "examples.handlers:app"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Choices with their defaults.

    `app` is what workers import, as module:attribute; `slots` is how many jobs each runs at a
    time. Without `api_port` a free port is taken. `restart` starts parts again that have ended,
    as a kubelet does. `grace` is how many seconds parts may take to end.
    """

    app: str = DEFAULT_APP
    workers: int = 2
    slots: int = 4
    api_port: int | None = None
    restart: bool = True
    grace: float = 10.0
