"""The cache of the chunks of arrays, by array. For any other job only its labels are read."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.arrays.chunk_jobs import array_uid_of, read_chunk_job
from asyncjob.lifecycle.arrays.observed import ChunkJob

ArrayKey = str
"""`namespace/uid` of an array: a label may hold any UID, so only its own namespace counts."""

_NO_CHUNKS: Final[Mapping[str, ChunkJob]] = MappingProxyType({})


def array_key(namespace: str, uid: str) -> ArrayKey:
    """Return the key of an array."""
    return f"{namespace}/{uid}"


class ChunkCache:
    """Chunks by array and name; `listener` is called with each array of which one changes."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[ArrayKey], None]] = []
        self._by_array: defaultdict[ArrayKey, dict[str, ChunkJob]] = defaultdict(dict)
        self.place_of: dict[str, tuple[ArrayKey, str]] = {}
        """Array and name of each chunk, by its UID."""

    def add_listener(self, listener: Callable[[ArrayKey], None]) -> None:
        """Call a function with each array of which a chunk changes from now on."""
        self._listeners.append(listener)

    def on_update(self, obj: JsonObject) -> None:
        """Store a job if it is a chunk."""
        uid, job_uid = array_uid_of(obj), text(child(obj, "metadata"), "uid")
        if not uid:
            if job_uid in self.place_of:
                self.on_delete(job_uid)
            return
        chunk = read_chunk_job(obj)
        key = array_key(chunk.namespace, uid)
        if self.place_of.get(job_uid, (key, chunk.name)) != (key, chunk.name):
            self.on_delete(job_uid)
        before = self._by_array[key].get(chunk.name)
        self._by_array[key][chunk.name] = chunk
        self.place_of[job_uid] = (key, chunk.name)
        if before != chunk:
            self._notify(key)

    def on_delete(self, uid: str) -> None:
        """Forget a deleted job."""
        place = self.place_of.pop(uid, None)
        if place is None:
            return
        key, name = place
        chunks = self._by_array.get(key)
        if chunks is None:
            return
        if name in chunks and chunks[name].uid == uid:
            del chunks[name]
        if not chunks:
            del self._by_array[key]
        self._notify(key)

    def chunks_of(self, key: ArrayKey) -> Mapping[str, ChunkJob]:
        """Return the chunks of an array by name."""
        return self._by_array.get(key, _NO_CHUNKS)

    def is_chunk(self, uid: str) -> bool:
        """Return whether a job is a chunk, which only the counting of its items removes."""
        return uid in self.place_of

    def _notify(self, key: ArrayKey) -> None:
        for listener in self._listeners:
            listener(key)
