"""What is said of objects that come back other than they were."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Remark(StrEnum):
    """What is said of an object that comes back other than it was; counted."""

    OWNERS = "owners"
    FINALIZERS = "finalizers"
    DEADLINE = "deadline"
    HOPELESS = "hopeless"
    RERUN = "rerun"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


REMARK_DOCS: Final[Mapping[Remark, str]] = {
    Remark.OWNERS: "owner references are left out: the owners' UIDs are of another life",
    Remark.FINALIZERS: "finalizers are left out",
    Remark.DEADLINE: "notAfter is left out of jobs that had begun before it",
    Remark.HOPELESS: "jobs wait for what does not come back",
    Remark.RERUN: "reruns asked for and not yet created have to be asked for again",
    Remark.TRIGGER: "trigger is left out: it has acted, or has to be asked for again",
    Remark.BACKFILL: "backfill is left out: what is left of it has to be asked for again",
}
