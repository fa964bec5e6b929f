"""Results of items: what is written of them into a store, under which names, and which count.

Each attempt of a chunk writes objects of its own, JSON lines of `{"item": 17, "result": ...}`, and
writes one again, with more lines, as items are done. A checkpoint says that an item is done only
once its result is stored. So whatever dies: of an item that counts as done there is a result.

There may be others, of runs that were not counted: of a worker that died, or lost its job and works
on. The run that counted is the last one, because nothing runs an item that is done. So a reader
goes from the newest attempt to the oldest, takes of each item the first result that it meets, and
of items that are not done none. A worker that is late writes to its own objects, which are older.
"""

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.errors import AsyncJobError
from asyncjob.json_text import loads
from asyncjob.json_types import Json, JsonObject, child, integer, text
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges

CHUNKS_PER_FOLDER: Final = 1000
"""Chunks whose results are in one folder: a reader holds the names of one folder at a time."""

READ_AHEAD_BYTES: Final = 64 * 1024 * 1024
"""Results that a reader holds at most, not counting the object it reads: chunks are not run in the
order of their items. What has no room is read once more when its turn comes."""

_NUMBER: Final = "([0-9]{1,12})"
_OBJECT_NAME: Final = re.compile(
    rf"{_NUMBER}-{_NUMBER}-{_NUMBER}-([0-9a-z-]{{1,64}})-{_NUMBER}\.jsonl"
)
_FOLDER_NAME: Final = re.compile(_NUMBER)


class ItemResultsError(AsyncJobError):
    """The results of an array are not what they should be: some are missing, or are no results."""

    code = "item-results"


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Where the results of a chunk's items go, as its payload says it."""

    folder: str
    """The folder of the array's results."""

    generation: int
    """How many chunks of the array had been cut when this one was: the later one counts."""

    def to_json(self) -> dict[str, Json]:
        """Return it as it stands in the payload."""
        return {"folder": self.folder, "generation": self.generation}


def read_result_target(stored: JsonObject) -> ResultTarget:
    """Read where results go. Raises ValueError for what no operator has written."""
    target = ResultTarget(text(stored, "folder"), integer(stored, "generation"))
    if not target.folder or target.generation < 1:
        raise ValueError("results: no folder or no generation")
    return target


def results_folder(spec: JsonObject, uid: str) -> str:
    """Return the folder of an array's results; empty if it keeps none.

    An array that is deleted and created again has another UID, and so does not find old results.
    """
    uri = text(child(spec, "results"), "uri")
    return f"{uri.rstrip('/')}/{uid}" if uri else ""


def object_path(
    generation: int, created: int, attempt: int, job_uid: str, number: int
) -> tuple[str, str]:
    """Return folder and name of an object, below the folder of the array.

    `created` is when the chunk's job was created, in epoch seconds: one that is deleted before its
    UID is on the list is created again, as the same generation. `number` counts the objects of one
    attempt. The UID keeps jobs apart that had the same name.
    """
    name = f"{generation}-{created}-{attempt}-{job_uid}-{number}.jsonl"
    return str(generation // CHUNKS_PER_FOLDER), name


def result_line(item: int, result: bytes) -> bytes:
    """Return the line of an item; `result` is JSON."""
    return b'{"item":%d,"result":%b}\n' % (item, result)


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What the handler has returned for one item."""

    item: int
    """Number of the item."""

    result: Json
    """What was returned, as JSON."""


class ResultObjects(Protocol):
    """The results of one array in a store; each call may block, and raises OffloadError."""

    def names(self, folder: str) -> Sequence[str]:
        """Return what is in a folder, `""` for the array's own; nothing if there is none."""

    def read(self, folder: str, name: str) -> bytes:
        """Return the content of an object."""


_NOT_WANTED: Final = -1
"""Noted of an item that is not done, or whose result was taken already."""

_WANTED: Final = -2
"""Noted of a done item until its result is met; from then on the object's number is, from 0."""


class ResultReader:
    """Reads the results of items that are done, of each item one, in the order of the items.

    All objects are read once to find the one that counts for each item, and kept as long as there
    is room.
    """

    def __init__(
        self, objects: ResultObjects, done: ItemRanges, *, read_ahead: int = READ_AHEAD_BYTES
    ) -> None:
        self._objects = objects
        self._done = done
        self._read_ahead = read_ahead
        # Four bytes for each item, so that ten million of them fit into memory.
        self._place = array("i")
        for first, last in done.ranges:
            self._place += array("i", [_NOT_WANTED]) * (first - len(self._place))
            self._place += array("i", [_WANTED]) * (last + 1 - first)
        self._found: list[tuple[str, str]] = []
        self._kept: OrderedDict[int, dict[int, bytes]] = OrderedDict()
        self._kept_bytes = 0
        self.missing = NO_ITEMS
        """The items that are done and of which no result was found, once all were read."""

    def __iter__(self) -> Iterator[ItemResult]:
        """Yield the results; raises OffloadError, and ItemResultsError for other content."""
        self._find()
        for item in self._done:
            place = self._place[item]
            if place >= 0:
                yield ItemResult(item, self._take(place, item))

    def _find(self) -> None:
        """Note for each item which object counts."""
        for folder in _newest_folders(self._objects.names("")) if self._done else ():
            for name in _newest_objects(self._objects.names(folder)):
                place = len(self._found)
                if lines := self._read(folder, name, _WANTED):
                    self._found.append((folder, name))
                    for item in lines:
                        self._place[item] = place
                    self._keep(place, lines)
        self.missing = ItemRanges.of(item for item in self._done if self._place[item] == _WANTED)

    def _read(self, folder: str, name: str, place: int) -> dict[int, bytes]:
        """Return the lines of an object whose items have this place."""
        lines: dict[int, bytes] = {}
        for line in self._objects.read(folder, name).splitlines():
            item, _ = _parse_line(name, line)
            if item < len(self._place) and self._place[item] == place:
                lines[item] = line
        return lines

    def _keep(self, place: int, lines: dict[int, bytes]) -> None:
        self._kept[place] = lines
        self._kept_bytes += sum(map(len, lines.values()))
        while self._kept_bytes > self._read_ahead and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= sum(map(len, dropped.values()))

    def _take(self, place: int, item: int) -> Json:
        """Return a result, and forget it."""
        folder, name = self._found[place]
        if place not in self._kept:
            self._keep(place, self._read(folder, name, place))
        lines = self._kept.pop(place)
        if item not in lines:
            raise ItemResultsError(f"{name} has lost the result of item {item} meanwhile")
        line = lines.pop(item)
        self._place[item] = _NOT_WANTED
        self._kept_bytes -= len(line)
        if lines:
            self._kept[place] = lines  # at the end again: what was used last is dropped last
        return _parse_line(name, line)[1]


def _newest_folders(names: Sequence[str]) -> list[str]:
    """Return the folders that are ours, those of later chunks first."""
    return sorted(filter(_FOLDER_NAME.fullmatch, names), key=int, reverse=True)


def _newest_objects(names: Sequence[str]) -> list[str]:
    """Return the objects that are ours, those of later chunks, jobs and attempts first."""
    ours: list[tuple[int, int, int, str, int, str]] = []
    for name in names:
        if found := _OBJECT_NAME.fullmatch(name):
            generation, created, attempt, uid, number = found.groups()
            ours.append((int(generation), int(created), int(attempt), uid, int(number), name))
    return [name for *_, name in sorted(ours, reverse=True)]


def _parse_line(name: str, line: bytes) -> tuple[int, Json]:
    try:
        record = loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or type(item := record.get("item")) is not int or item < 0:
        raise ItemResultsError(f"{name} holds something else than results of items")
    return item, record.get("result")
