"""What is said of objects that come back other than they were."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RestoreNote(StrEnum):
    """What is said of an object that comes back other than it was; counted."""

    OWNERS = "owners"
    FINALIZERS = "finalizers"
    DEADLINE = "deadline"
    UNSATISFIABLE = "hopeless"
    RERUN = "rerun"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


RESTORE_NOTE_DOCS: Final[Mapping[RestoreNote, str]] = {
    RestoreNote.OWNERS: "owner references are left out: the owners' UIDs are of another life",
    RestoreNote.FINALIZERS: "finalizers are left out",
    RestoreNote.DEADLINE: "notAfter is left out of jobs that had begun before it",
    RestoreNote.UNSATISFIABLE: "jobs wait for what does not come back",
    RestoreNote.RERUN: "reruns asked for and not yet created have to be asked for again",
    RestoreNote.TRIGGER: "trigger is left out: it has acted, or has to be asked for again",
    RestoreNote.BACKFILL: "backfill is left out: what is left of it has to be asked for again",
}
