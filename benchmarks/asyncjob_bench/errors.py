"""What can go wrong in a benchmark, each with what would help."""

from asyncjob_dev.errors import DevError


class BenchError(DevError):
    """A measurement cannot be made, or what was measured cannot be right."""


class LeftOutError(BenchError):
    """A part cannot run on this machine; the message says why, and the others go on."""


class WrongOutcomeError(BenchError):
    """Jobs did not end as they should have, so that their time means nothing."""
