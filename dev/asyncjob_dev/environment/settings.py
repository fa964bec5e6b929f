"""What can be chosen about an environment."""

from dataclasses import dataclass

from asyncjob.names import DEFAULT_QUEUE

DEFAULT_APP = "examples.handlers:app"


@dataclass(frozen=True, kw_only=True)
class EnvironmentSettings:
    """Choices with their defaults.

    `app` is what workers import, as module:attribute; `slots` is how many jobs each runs at a
    time. Each of the `queues`, separated by commas, gets so many workers. Without `api_port` or
    `gateway_port` a free port is taken. `restart` starts parts again that have ended, as a kubelet
    does. `grace` is how many seconds parts may take to end.
    """

    app: str = DEFAULT_APP
    workers: int = 2
    slots: int = 4
    queues: str = DEFAULT_QUEUE
    api_port: int | None = None
    gateway_port: int | None = None
    restart: bool = True
    grace: float = 10.0
