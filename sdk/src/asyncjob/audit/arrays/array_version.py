"""`ArrayVersion`: one version of an array, cut down to what the rules compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Final

from asyncjob.audit.arrays.item_sets import ItemSet, items_between, joined, read_items, without
from asyncjob.audit.job_version import hash_of, order_of
from asyncjob.json_types import JsonObject, as_object, child, flag, integer, items, text, texts

ARRAY_CONTROL_FIELDS: Final = frozenset({"suspend", "cancel", "redrive"})
ENDED: Final = frozenset({"Succeeded", "Failed", "Cancelled"})
DEFAULT_PARALLELISM: Final = 20
DEFAULT_GRACE_SECONDS: Final = 30
_TOLD_ON_REDRIVE: Final = frozenset({"redrives", "reason", "message"})
"""What changes of a failed array whose redrive is refused."""


@dataclass(frozen=True, slots=True)
class ArrayVersion:
    """One version of an array; hashes stand for values that are only compared."""

    namespace: str
    name: str
    uid: str
    version: str
    order: int
    """The resourceVersion as a number; 0: none."""

    seen: float
    """When the recorder saw it, in epoch seconds."""

    fixed: int
    """All of the spec that must not change."""

    cancel: bool
    redrive: int
    parallelism: int
    grace: float
    """Seconds that a running chunk has to stop."""

    phase: str
    has_total: bool
    """Whether the status tells how many items there are."""

    total: int
    next: int
    succeeded: int
    failed: int
    generation: int
    redrives: int
    open: Mapping[str, ItemSet]
    """The chunks under way by name."""

    open_count: int
    """How many entries the list of chunks under way has."""

    skip: ItemSet
    """Items that are done without having been run: they count once `next` has passed them."""

    requeued: ItemSet
    suspects: tuple[ItemSet, ...]
    failed_items: ItemSet
    failed_unlisted: int
    unreadable: str
    """What of it is not interval notation; empty if all is."""

    frozen: int
    """The whole status."""

    frozen_but_redrive: int
    """The status without what a refused redrive changes."""

    has_completion: bool
    conditions: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it without a redrive."""
        return self.phase in ENDED

    @property
    def uncounted(self) -> ItemSet:
        """The items that are in a chunk, or still to be put into one."""
        uncut = items_between(self.next, self.total)
        return joined([*self.open.values(), self.requeued, *self.suspects, uncut])

    @property
    def counted(self) -> ItemSet:
        """The items that are done or have failed."""
        return without(items_between(0, self.total), self.uncounted)


def read_array_version(obj: JsonObject, seen: float) -> ArrayVersion:
    """Return what the rules compare of an array as it was recorded."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    version = text(meta, "resourceVersion")
    entries = [as_object(entry) for entry in items(status, "open")]
    notes = _Notes()
    return ArrayVersion(
        namespace=intern(text(meta, "namespace")),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        version=version,
        order=order_of(version),
        seen=seen,
        fixed=hash_of({key: spec[key] for key in spec if key not in ARRAY_CONTROL_FIELDS}),
        cancel=flag(spec, "cancel"),
        redrive=integer(spec, "redrive"),
        parallelism=integer(spec, "parallelism", DEFAULT_PARALLELISM),
        grace=float(integer(spec, "cancelGraceSeconds", DEFAULT_GRACE_SECONDS)),
        phase=intern(text(status, "phase", "Pending")),
        has_total="total" in status,
        total=integer(status, "total"),
        next=integer(status, "next"),
        succeeded=integer(status, "succeeded"),
        failed=integer(status, "failed"),
        generation=integer(status, "generation"),
        redrives=integer(status, "redrives"),
        open={text(one, "name"): notes.read(text(one, "items")) for one in entries},
        open_count=len(entries),
        skip=notes.read(text(child(spec, "items"), "skip")),
        requeued=notes.read(text(status, "requeued")),
        suspects=tuple(map(notes.read, texts(status, "suspects"))),
        failed_items=notes.read(text(status, "failedItems")),
        failed_unlisted=integer(status, "failedUnlisted"),
        unreadable=notes.unreadable,
        frozen=hash_of(status),
        frozen_but_redrive=hash_of(
            {key: status[key] for key in status if key not in _TOLD_ON_REDRIVE}
        ),
        has_completion="completionTime" in status,
        conditions=tuple(
            intern(text(as_object(one), "type")) for one in items(status, "conditions")
        ),
    )


class _Notes:
    """Reads interval notation, and remembers what is none."""

    def __init__(self) -> None:
        self.unreadable = ""

    def read(self, notation: str) -> ItemSet:
        try:
            return read_items(notation)
        except ValueError as error:
            self.unreadable = self.unreadable or str(error)
            return ()
