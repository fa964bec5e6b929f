"""What is wrong with the choice of a cluster."""

from asyncjob_dev.errors import DevError


class TargetError(DevError):
    """The suite cannot run on what was chosen; the message says what would help."""
