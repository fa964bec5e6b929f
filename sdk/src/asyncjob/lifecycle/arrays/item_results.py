"""Results of items: what is written of them into a store, under which names, and which count.

Each attempt of a chunk writes objects of its own, JSON lines of `{"item": 17, "result": ...}`, and
writes one anew, with more lines, as items are done. A checkpoint says that an item is done only
once its result is stored. So whatever dies: of an item that counts as done there is a result.

There may be others, of runs that were not counted: of a worker that died, or lost its job and works
on. The run that counted is the last one, because nothing runs an item that is done. So a reader
goes from the newest attempt to the oldest, takes of each item the first result that it meets, and
of items that are not done none. A worker that is late writes to its own objects, which are older.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.json_text import loads
from asyncjob.json_types import Json, JsonObject, integer, text
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges

MAX_RESULT_BYTES: Final = 256 * 1024
"""The most bytes of the result of one item, as JSON."""

CHUNKS_PER_FOLDER: Final = 1000
"""Chunks whose results are in one folder: so many names a reader holds at a time."""

_NUMBER: Final = "([0-9]{1,12})"
_OBJECT_NAME: Final = re.compile(rf"{_NUMBER}-{_NUMBER}-([0-9a-z-]{{1,64}})-{_NUMBER}\.jsonl")
_FOLDER_NAME: Final = re.compile(_NUMBER)


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Where the results of a chunk's items go, as its payload says it."""

    uri: str
    """The folder that the array names; below it each array has one with its UID as the name."""

    generation: int
    """How many chunks of the array had been cut when this one was: the later one counts."""

    def to_json(self) -> dict[str, Json]:
        """Return it as it stands in the payload."""
        return {"uri": self.uri, "generation": self.generation}


def read_result_target(stored: JsonObject) -> ResultTarget:
    """Read where results go. Raises ValueError for what no operator has written."""
    target = ResultTarget(text(stored, "uri"), integer(stored, "generation"))
    if not target.uri or target.generation < 1:
        raise ValueError("results: no uri or no generation")
    return target


def results_uri(spec: JsonObject, uid: str) -> str | None:
    """Return the folder of an array's results; None if it keeps none."""
    results = spec.get("results")
    uri = text(results, "uri") if isinstance(results, dict) else ""
    return f"{uri.rstrip('/')}/{uid}" if uri else None


def object_path(generation: int, attempt: int, job_uid: str, number: int) -> tuple[str, str]:
    """Return folder and name of an object, below the folder of the array.

    `number` counts the objects of one attempt. The UID keeps jobs apart that had the same name.
    """
    name = f"{generation}-{attempt}-{job_uid}-{number}.jsonl"
    return str(generation // CHUNKS_PER_FOLDER), name


def result_line(item: int, result: bytes) -> bytes:
    """Return the line of an item; `result` is JSON."""
    return b'{"item":%d,"result":%b}\n' % (item, result)


class ResultObjects(Protocol):
    """The results of one array in a store; each call may block, and raises OffloadError."""

    def names(self, folder: str) -> Sequence[str]:
        """Return what is in a folder, `""` for the array's own; nothing if there is none."""

    def read(self, folder: str, name: str) -> bytes:
        """Return the content of an object."""


class ResultReader:
    """Reads the results of items that are done, of each item one."""

    def __init__(self, objects: ResultObjects, done: ItemRanges) -> None:
        self._objects = objects
        # A byte for each item: to look at a million of them is then nothing.
        self._left = bytearray(done.ranges[-1][1] + 1 if done else 0)
        for first, last in done.ranges:
            self._left[first : last + 1] = b"\1" * (last + 1 - first)

    def batches(self) -> Iterator[list[tuple[int, Json]]]:
        """Yield items and their results, an object at a time.

        Raises OffloadError, and ValueError for an object that holds something else.
        """
        if not any(self._left):
            return
        for folder in _newest_folders(self._objects.names("")):
            for name in _newest_objects(self._objects.names(folder)):
                data = self._objects.read(folder, name)
                if found := [one for one in _read_lines(name, data) if self._is_first(one[0])]:
                    yield found

    @property
    def missing(self) -> ItemRanges:
        """Return the items that are done and of which no result was found so far."""
        return ItemRanges.of(item for item, left in enumerate(self._left) if left)

    def _is_first(self, item: int) -> bool:
        first = item < len(self._left) and self._left[item] == 1
        if first:
            self._left[item] = 0
        return first


def _newest_folders(names: Sequence[str]) -> list[str]:
    """Return the folders that are ours, those of later chunks first."""
    return sorted(filter(_FOLDER_NAME.fullmatch, names), key=int, reverse=True)


def _newest_objects(names: Sequence[str]) -> list[str]:
    """Return the objects that are ours, those of later chunks and attempts first."""
    ours: list[tuple[int, int, str, int, str]] = []
    for name in names:
        if found := _OBJECT_NAME.fullmatch(name):
            generation, attempt, uid, number = found.groups()
            ours.append((int(generation), int(attempt), uid, int(number), name))
    return [name for *_, name in sorted(ours, reverse=True)]


def _read_lines(name: str, data: bytes) -> Iterator[tuple[int, Json]]:
    for line in data.splitlines():
        try:
            record = loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or type(item := record.get("item")) is not int or item < 0:
            raise ValueError(f"{name} holds something else than results of items")
        yield item, record.get("result")
