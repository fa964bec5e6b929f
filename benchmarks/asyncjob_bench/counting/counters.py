"""Counters that no noise moves.

Blocks of memory that stay allocated, and the bytecode instructions that our own code executes,
without those of libraries.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import asyncjob
import asyncjob_operator
import asyncjob_worker


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


OURS: Final = tuple(
    str(Path(package.__file__ or "").parent)
    for package in (asyncjob, asyncjob_operator, asyncjob_worker)
)

Trace = Callable[[FrameType, str, Any], Any]


class InstructionCount:
    """Instructions so far."""

    def __init__(self, ours: tuple[str, ...] = OURS) -> None:
        self.instructions = 0
        self._ours = ours

    def call(self, frame: FrameType, _event: str, _argument: Any) -> Trace | None:
        """Look into a frame, if its code is ours."""
        if not frame.f_code.co_filename.startswith(self._ours):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, _frame: FrameType, event: str, _argument: Any) -> Trace:
        """Count one."""
        self.instructions += event == "opcode"
        return self.step


@contextmanager
def count_instructions(ours: tuple[str, ...] = OURS) -> Iterator[InstructionCount]:
    """Count what this thread executes inside.

    No garbage is collected meanwhile: what that executes depends on what was done before.
    """
    count, before, collects = InstructionCount(ours), sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(count.call)
    try:
        yield count
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
