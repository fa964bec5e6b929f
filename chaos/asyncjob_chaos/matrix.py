"""All cells: each fault under each load."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob_chaos.faults import apiserver, crowds, machines, network, processes, store
from asyncjob_chaos.faults.fault import Fault
from asyncjob_chaos.load import LOADS, LoadKind

FAULTS: Final[tuple[Fault, ...]] = (
    *processes.FAULTS,
    *network.FAULTS,
    *machines.FAULTS,
    *apiserver.FAULTS,
    *store.FAULTS,
    *crowds.FAULTS,
)


@dataclass(frozen=True)
class Cell:
    """One fault under one load."""

    fault: Fault
    load: LoadKind

    @property
    def name(self) -> str:
        """The name it is run by."""
        return f"{self.fault.name}/{self.load.name}"


CELLS: Final = tuple(
    Cell(fault, load) for fault in FAULTS for load in LOADS if load.name in fault.loads
)


def named(names: Sequence[str]) -> list[Cell]:
    """Return the cells of these names; a fault's name alone means all its loads.

    Raises KeyError for a name that there is not.
    """
    found: list[Cell] = []
    for name in names:
        cells = [cell for cell in CELLS if name in {cell.name, cell.fault.name}]
        if not cells:
            raise KeyError(name)
        found += cells
    return found


def shuffled(seed: int) -> list[Cell]:
    """Return all cells in an order that follows from the seed."""
    cells = list(CELLS)
    random.Random(seed).shuffle(cells)
    return cells
