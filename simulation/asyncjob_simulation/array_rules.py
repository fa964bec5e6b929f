"""What must hold of arrays, judged by each version of each array.

Written from what is promised to users, as `invariants.py` is: where each item is, is read here
from the notation in the status once more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.names import ARRAY_LABEL, ARRAYS, GROUP, JOBS
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.item_runs import Item, ItemRuns

Object = dict[str, Any]
Broken = Callable[[str, str, str], None]

ENDED: Final = frozenset({"Succeeded", "Failed", "Cancelled"})

ONE_PLACE: Final = "an item is in one place"
COUNTED: Final = "an item counts once, and for good"
DONE: Final = "only what is done counts as done"
INNOCENT: Final = "an item fails only if it has failed"
ENDS: Final = "every array ends"
NO_CHUNK: Final = "no chunk is left behind"
RESERVED: Final = "a chunk has the items that were reserved for it"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the items of an array are."""

    open: Mapping[str, frozenset[int]]
    """The items of each chunk that is not counted, by its name."""

    requeued: frozenset[int]
    halves: frozenset[int]
    failed: frozenset[int]
    counted: frozenset[int]
    """What is nowhere else: it counts as done."""

    twice: frozenset[int]
    """What is in several places."""


def places_of(status: Object) -> Places:
    """Return where items are by an array's status."""
    opened = {one["name"]: items_in(one["items"]) for one in status.get("open") or ()}
    halves = [items_in(one) for one in status.get("suspects") or ()]
    requeued = items_in(status.get("requeued") or "")
    failed = items_in(status.get("failedItems") or "")
    uncut = frozenset(range(status.get("next", 0), status.get("total", 0)))
    all_places = [*opened.values(), *halves, requeued, failed, uncut]
    there = frozenset[int]().union(*all_places)
    twice = {item for item in there if sum(item in place for place in all_places) > 1}
    return Places(
        opened,
        requeued,
        frozenset[int]().union(*halves),
        failed,
        frozenset(range(status.get("total", 0))) - there,
        frozenset(twice),
    )


def items_in(notation: str) -> frozenset[int]:
    """Return the items that a notation such as `3,11-12` names."""
    items = set[int]()
    for part in filter(None, notation.split(",")):
        first, _, last = part.partition("-")
        items.update(range(int(first), int(last or first) + 1))
    return frozenset(items)


@dataclass
class ArrayRules:
    """Watches the arrays of one simulation."""

    server: ApiServer
    runs: ItemRuns
    count: Callable[[str], None]
    broken: Broken
    on_counted: Callable[[Object, frozenset[int]], None] = lambda *_: None
    """Called with each array whose status has changed, and the items that it has run and done."""

    _counted: dict[str, frozenset[int]] = field(default_factory=lambda: defaultdict(frozenset))
    _skipped: dict[str, frozenset[int]] = field(default_factory=lambda: defaultdict(frozenset))
    _place: int = 0

    def is_counted(self, item: Item) -> bool:
        """Return whether an item counts as done."""
        return item[1] in self._counted[item[0]]

    def is_skipped(self, item: Item) -> bool:
        """Return whether an array skips an item."""
        return item[1] in self._skipped[item[0]]

    def look(self) -> None:
        """Judge what has been stored of arrays since the last time."""
        collection = self.server.storage.collection((GROUP, ARRAYS))
        if self._place == collection.end:
            return
        changes = collection.changes_from(max(self._place, collection.dropped))
        self._place = collection.end
        for change in changes:
            new = change.new
            if new is not None and new.get("status"):
                self._on_status(new, (change.old or {}).get("status") or {})

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        self.look()
        job = change.new
        if change.old is not None or job is None or not _array_of(job):
            return
        self.count("chunk")
        array = self._find(_array_of(job))
        status = (array or {}).get("status") or {}
        reserved = {one["name"]: one["items"] for one in status.get("open") or ()}
        name, items = job["metadata"]["name"], job["spec"]["payload"].get("items")
        if name not in reserved:
            self.count("chunk that is not listed")
        elif items_in(reserved[name]) != items_in(items):
            self.broken(RESERVED, name, f"{reserved[name]} were, and it has {items}")

    def unfinished(self) -> Iterator[str]:
        """Yield the arrays that have not ended."""
        for array in self._arrays():
            if (array.get("status") or {}).get("phase") not in ENDED:
                yield array["metadata"]["name"]

    def left(self) -> Iterator[str]:
        """Yield the chunks of arrays that have ended, or are gone."""
        for job in self.server.storage.collection((GROUP, JOBS)).objects.values():
            uid = _array_of(job)
            array = self._find(uid) if uid else None
            if uid and (array is None or (array.get("status") or {}).get("phase") in ENDED):
                yield job["metadata"]["name"]

    def check_calm(self) -> None:
        """Judge what has to be over."""
        for name in self.unfinished():
            array = self.server.storage.get((GROUP, ARRAYS), ("work", name)) or {}
            self.broken(ENDS, name, f"{array.get('status')} at the end")
        for name in self.left():
            self.broken(NO_CHUNK, name, "its array has ended, or is gone")
        for array in self._arrays():
            self.on_counted(array, self._run_and_done(array["metadata"]["uid"]))

    def _run_and_done(self, uid: str) -> frozenset[int]:
        return self._counted[uid] - self._skipped[uid]

    def _arrays(self) -> list[Object]:
        return list(self.server.storage.collection((GROUP, ARRAYS)).objects.values())

    def _find(self, uid: str) -> Object | None:
        return next((one for one in self._arrays() if one["metadata"]["uid"] == uid), None)

    # ---- the status

    def _on_status(self, array: Object, was: Object) -> None:
        meta, status = array["metadata"], array["status"]
        if status == was:
            return
        name, uid = meta["name"], meta["uid"]
        before, now = places_of(was), places_of(status)
        skipped = self._skipped[uid] = items_in(_skip_of(array))
        if now.twice:
            self.broken(ONE_PLACE, name, f"{sorted(now.twice)} are in several: {status}")
        if status.get("succeeded", 0) != len(now.counted):
            words = f"{status.get('succeeded')} are counted, {sorted(now.counted)} are nowhere else"
            self.broken(ONE_PLACE, name, words)
        again = self._counted[uid] - now.counted
        if again:
            self.broken(COUNTED, name, f"{sorted(again)} counted as done, and do so no more")
        undone = {item for item in now.counted - skipped if (uid, item) not in self.runs.done}
        if undone:
            self.broken(DONE, name, f"{sorted(undone)} count, and no handler has ended them")
        self._counted[uid] = now.counted
        self.on_counted(array, self._run_and_done(uid))
        self._check_failed(name, uid, before, now)
        self._check_end(name, status, now)
        self._count(was, status, before, now)
        if skipped & now.counted - before.counted:
            self.count("item skipped")
        self._count_start(was, status)

    def _check_failed(self, name: str, uid: str, before: Places, now: Places) -> None:
        failed = now.failed - before.failed
        for chunk, items in before.open.items():
            blamed = {item for item in items & failed if (uid, item) not in self.runs.failed}
            # A chunk that its worker's death ends is halved, until an item stands alone.
            if len(blamed) == 1 and items - blamed <= now.counted | now.failed:
                self.count("item that ends its worker found")
            elif blamed:
                words = f"{sorted(blamed)} of {chunk} fail, and have not failed"
                self.broken(INNOCENT, name, words)

    def _check_end(self, name: str, status: Object, now: Places) -> None:
        if status["phase"] not in ENDED:
            return
        if now.open:
            self.broken(ENDS, name, f"it is {status['phase']}, and {sorted(now.open)} are open")
        whole = len(now.counted | now.failed) == status.get("total", 0)
        if status["phase"] == "Succeeded" and not whole:
            self.broken(COUNTED, name, f"it has succeeded, and not all are counted: {status}")

    def _count(self, was: Object, status: Object, before: Places, now: Places) -> None:
        if status["phase"] in ENDED and was.get("phase") not in ENDED:
            self.count(f"array {status['phase']}")
        if was.get("phase") == "Failed" and status["phase"] == "Running":
            self.count("array redriven")
        if status.get("reason") == "Suspended" and was.get("reason") != "Suspended":
            self.count("array suspended")
        if status.get("reason") == "ResultsNotStored" != was.get("reason"):
            self.count("array whose results are not stored")
        reserved = [one for one in was.get("open") or () if not one.get("uid")]
        if reserved and status.get("writer") != was.get("writer"):
            self.count("reservation taken over")
        if now.halves - before.halves:
            self.count("chunk halved")
        if now.requeued - before.requeued and was.get("phase") == "Running":
            self.count("items of a lost chunk")

    def _count_start(self, was: Object, status: Object) -> None:
        waits = ("NotBefore", "WaitingForDependency")
        if was.get("reason") in waits and status.get("generation", 0) > 0:
            self.count("array started after a wait")
        if status.get("reason") == "DependencyFailed" != was.get("reason"):
            self.count("array that cannot start")


def _skip_of(array: Object) -> str:
    return str(((array.get("spec") or {}).get("items") or {}).get("skip") or "")


def _array_of(job: Object) -> str:
    return str((job["metadata"].get("labels") or {}).get(ARRAY_LABEL, ""))
