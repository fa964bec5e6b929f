"""Which colour a phase has, here and in all views. Pure."""

from typing import Final

from asyncjob.cli.tables import Cell
from asyncjob.lifecycle.phases import Phase

PHASE_COLOURS: Final[dict[Phase, str]] = {
    Phase.PENDING: "yellow",
    Phase.SCHEDULED: "cyan",
    Phase.QUEUED: "blue",
    Phase.RUNNING: "magenta",
    Phase.RETRYING: "yellow",
    Phase.SUCCEEDED: "green",
    Phase.DEAD_LETTER: "red",
    Phase.CANCELLED: "dim",
}


PHASE_NAMES: Final = frozenset(phase.value for phase in Phase)


def phase_cell(phase: Phase, *, cancelling: bool = False) -> Cell:
    """Return the phase in its colour; one that is being cancelled says so."""
    text = f"{phase.value}, cancelling" if cancelling else phase.value
    return Cell(text, PHASE_COLOURS[phase])


def phase_colour(name: str) -> str:
    """Return the colour of a phase by its name; none for other words."""
    return PHASE_COLOURS[Phase(name)] if name in PHASE_NAMES else ""
