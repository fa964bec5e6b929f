"""Counts the blocks of memory that stay allocated: what is kept of a job, whatever the machine."""

import gc
import sys
from collections.abc import Callable


def blocks_kept(fill: Callable[[int], object], count: int) -> float:
    """Return the blocks kept for each of so many; `fill` takes the number of each in turn.

    What is set up once, by the first, is left out.
    """
    fill(0)
    gc.collect()
    before = sys.getallocatedblocks()
    for number in range(1, count + 1):
        fill(number)
    gc.collect()
    return (sys.getallocatedblocks() - before) / count
