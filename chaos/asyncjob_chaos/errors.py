"""What can go wrong in a run, each with what would help."""

from asyncjob_dev.errors import DevError


class ChaosError(DevError):
    """A cell cannot be run to its end."""


class ImpossibleHereError(ChaosError):
    """A fault cannot be made on this machine; the message says why, and the other cells go on."""
