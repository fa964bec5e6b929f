"""What can go wrong with a node, each with what to install or do."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from asyncjob_dev.errors import DevError


class NodeError(DevError):
    """The node cannot do what was asked."""


class CannotRunNodeError(NodeError):
    """This machine lacks something that a node needs."""

    def __init__(self, lacks: Iterable[str]) -> None:
        super().__init__(f"no node can run here: {'; '.join(lacks)}")


class NodeNameError(NodeError):
    """The name does not fit into those of a cgroup and a network device."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is no name for a node: take 1 to 20 lower-case letters, digits and hyphens"
        )


class NodeInUseError(NodeError):
    """A node of this name runs."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a node called {name} is up; take it down first "
            f"(`python -m asyncjob_dev node down --name={name}`), or choose another name"
        )


class NodeNotUpError(NodeError):
    """There is no such node."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no node called {name} is up; `python -m asyncjob_dev node up` starts it")


class NoFreeBlockError(NodeError):
    """Every network that a node could have is in use on this machine."""

    def __init__(self, first: str, last: str) -> None:
        super().__init__(f"no network between {first} and {last} is free on this machine")


class CommandFailedError(NodeError):
    """A program that sets up or serves the node ended with an error."""

    def __init__(self, command: Sequence[str], returncode: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {returncode}: {said.strip()}")


class LeftoverError(NodeError):
    """Something of a node does not go away."""

    def __init__(self, what: str | Path) -> None:
        super().__init__(
            f"{what} is still there after the node's end; the next start of any node tries again"
        )
