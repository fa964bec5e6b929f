"""Which part of the product the jobs of a simulation are about.

Each part has lives of its own: what is added to one changes nothing about the seeds of another.
"""

from enum import StrEnum


class Profile(StrEnum):
    """What the jobs of a simulation do."""

    JOBS = "jobs"
    """They take their time, fail, sleep, wait for each other, for start times and limits."""

    WAITS = "waits"
    """Their handlers take steps, sleep, and wait for signals; dead letters are redriven."""

    ARRAYS = "arrays"
    """They are chunks of arrays, whose items fail or end their workers."""

    CHILDREN = "children"
    """Their handlers submit children and wait for them; some have a deadline."""
