"""The clusters that the suite can run on, behind one interface."""

from e2e.targets.choice import choose
from e2e.targets.target import Images, Target

__all__ = ["Images", "Target", "choose"]
