"""Closed lists about arrays: phases, reasons, and which phases are final."""

from enum import StrEnum
from typing import Final


class ArrayPhase(StrEnum):
    """Where an array is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


FINAL_ARRAY_PHASES: Final = frozenset({ArrayPhase.SUCCEEDED, ArrayPhase.CANCELLED})
"""Phases that are never left."""

ENDED_ARRAY_PHASES: Final = FINAL_ARRAY_PHASES | {ArrayPhase.FAILED}
"""Phases that only a redrive leaves."""


class ArrayReason(StrEnum):
    """Why an array is in its phase."""

    NOT_BEFORE = "NotBefore"
    WAITING_FOR_DEPENDENCY = "WaitingForDependency"
    DEPENDENCY_FAILED = "DependencyFailed"
    NO_WORKER = "NoWorker"
    SUSPENDED = "Suspended"
    CANCEL_REQUESTED = "CancelRequested"
    ITEMS_FAILED = "ItemsFailed"
    TOO_MANY_FAILED = "TooManyFailed"
    TOO_SCATTERED = "TooScattered"
    PAYLOAD_TOO_LARGE = "PayloadTooLarge"
    ITEMS_UNREADABLE = "ItemsUnreadable"
    RESULTS_NOT_STORED = "ResultsNotStored"
    UNKNOWN_TYPE = "UnknownType"
    REDRIVEN = "Redriven"
    REDRIVE_REFUSED = "RedriveRefused"


STOP_REASONS: Final = frozenset(
    {ArrayReason.ITEMS_UNREADABLE, ArrayReason.RESULTS_NOT_STORED, ArrayReason.UNKNOWN_TYPE}
)
"""Reasons for which nothing more is cut until a person redrives: no other chunk would fare better.
A file, a store or the workers are to blame, and no item."""
