"""Which cluster the suite runs on: the one asked for, else kind where Docker runs, else a node."""

from pathlib import Path

from asyncjob_dev.errors import NoEngineError
from asyncjob_dev.images import find_engine
from e2e.targets.errors import TargetError
from e2e.targets.existing import ExistingTarget
from e2e.targets.kind import KindTarget
from e2e.targets.node import NodeTarget
from e2e.targets.target import Environment, Target

VARIABLE = "ASYNCJOB_E2E_TARGET"
NAMES = ("kind", "node", "existing")


def choose(environ: Environment, folder: Path) -> Target:
    """Return the cluster, not yet up; raises TargetError."""
    name = environ.get(VARIABLE) or _default(environ)
    if name == "node":
        return NodeTarget(environ)
    if name == "kind":
        return KindTarget(environ, folder)
    if name == "existing":
        return ExistingTarget(environ)
    raise TargetError(f"{name!r} is no target; choose one of {', '.join(NAMES)}")


def _default(environ: Environment) -> str:
    try:
        return "kind" if find_engine(environ).name == "docker" else "node"
    except NoEngineError:
        return "node"
