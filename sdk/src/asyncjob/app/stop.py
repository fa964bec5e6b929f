"""Why a running handler is told to stop."""

from enum import StrEnum


class Stop(StrEnum):
    """Why a running handler is told to stop; a later one in this list outranks an earlier one."""

    DRAINING = "draining"
    TIMED_OUT = "timed out"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    FENCED = "fenced"
