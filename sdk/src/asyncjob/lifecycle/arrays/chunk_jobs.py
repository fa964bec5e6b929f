"""The job that is created for a chunk, and what is read of such a job."""

from typing import Final

from asyncjob.json_types import Json, JsonObject, child, flag, integer, items, opt_integer, text
from asyncjob.lifecycle.arrays.chunks import (
    DEFAULT_ITEM_RETRIES,
    ITEMS_UNREADABLE,
    RESULTS_NOT_STORED,
    ChunkReport,
    ChunkWork,
    read_checkpoint,
    read_result,
)
from asyncjob.lifecycle.arrays.item_index import (
    ItemIndex,
    chunk_file,
    index_payload,
    read_index,
)
from asyncjob.lifecycle.arrays.item_results import ResultTarget
from asyncjob.lifecycle.arrays.observed import ChunkJob, ChunkOutcome, ChunkRun
from asyncjob.lifecycle.arrays.state import ArrayView, OpenChunkEntry
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.names import API_VERSION, ARRAY_LABEL, JOB_KIND, is_object_name
from asyncjob.shards import shard_label

_COPIED_FIELDS: Final = (
    "executionTimeoutSeconds",
    "queueTimeoutSeconds",
    "leaseDurationSeconds",
    "cancelGraceSeconds",
)


def array_uid_of(obj: JsonObject) -> str:
    """Return the UID of the array whose chunk a job is, empty for any other job."""
    return text(child(child(obj, "metadata"), "labels"), ARRAY_LABEL)


def chunk_body(array: ArrayView, obj: JsonObject, entry: OpenChunkEntry) -> JsonObject:
    """Return the job to create for a chunk of the array, `obj`, or for the index of its file."""
    spec = child(obj, "spec")
    retry: dict[str, Json] = dict(child(spec, "retryPolicy"))
    if entry.suspect:
        retry |= {"maxCrashes": 0, "maxRetries": 0}
    copied: dict[str, Json] = {name: spec[name] for name in _COPIED_FIELDS if name in spec}
    return {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {
            "name": entry.name,
            "namespace": array.namespace,
            "labels": {ARRAY_LABEL: array.uid, **shard_label(entry.name)},
        },
        "spec": {
            "type": array.chunk_type if entry.items else array.index_type,
            "queue": text(spec, "queue", "default"),
            "priority": integer(spec, "priority"),
            "payload": _payload(array, spec, entry),
            **({"retryPolicy": retry} if retry else {}),
            **copied,
        },
    }


def _payload(array: ArrayView, spec: JsonObject, entry: OpenChunkEntry) -> dict[str, Json]:
    file, index = array.items_file, array.state.index
    if file is not None and not entry.items:
        return index_payload(array.name, array.uid, file)
    inline = items(child(spec, "items"), "inline")
    work = ChunkWork(
        array.name,
        array.uid,
        entry.items,
        spec.get("payload"),
        tuple(inline[item] for item in entry.items) if inline else None,
        integer(spec, "itemRetries", DEFAULT_ITEM_RETRIES),
        opt_integer(spec, "itemTimeoutSeconds"),
        child(spec, "retryPolicy"),
        chunk_file(file, index, entry.items) if file is not None and index is not None else None,
        ResultTarget(array.results_folder, entry.generation) if array.results_folder else None,
    )
    return work.to_json()


def is_chunk(existing: JsonObject, body: JsonObject) -> bool:
    """Return whether an existing job is the very chunk that was to be created.

    Neither label nor name is proof: others may create jobs, and give them both.
    """
    spec = child(existing, "spec")
    same = all(spec.get(name) == value for name, value in child(body, "spec").items())
    return same and array_uid_of(existing) == array_uid_of(body)


def read_chunk_job(obj: JsonObject) -> ChunkJob:
    """Return what is kept of a chunk's job."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    phase = Phase(text(status, "phase", Phase.QUEUED))
    array = text(child(child(spec, "payload"), "array"), "name")
    return ChunkJob(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        array=array if is_object_name(array) else "",  # anyone may have written it
        phase=phase,
        finished=phase in FINISHED_PHASES,
        cancel_requested=flag(spec, "cancel"),
        suspended=flag(spec, "suspend"),
        deleting="deletionTimestamp" in meta,
    )


def read_outcome(obj: JsonObject, entry: OpenChunkEntry) -> ChunkOutcome:
    """Return what a live read has shown of a chunk: by its result, or else by its checkpoint.

    The last checkpoint is written together with the result, and tells the same.
    """
    chunk, status = read_chunk_job(obj), child(obj, "status")
    error, report, index = child(status, "error"), ChunkReport(), None
    of_store = text(error, "type") in ITEMS_UNREADABLE | RESULTS_NOT_STORED
    offloaded = chunk.phase is Phase.SUCCEEDED and "result" not in status
    if not entry.items:
        index = _read_found_index(status.get("checkpoint" if offloaded else "result"))
    elif chunk.phase is Phase.SUCCEEDED and not offloaded:
        report = read_result(status.get("result"), entry.items)
    elif chunk.finished:
        report = read_checkpoint(status.get("checkpoint"), entry.items)
    return ChunkOutcome(
        uid=chunk.uid,
        finished=chunk.finished,
        phase=chunk.phase,
        reason=text(status, "reason"),
        error_type=text(error, "type"),
        error_category=text(error, "category"),
        message=text(error if of_store else status, "message"),
        report=report,
        result_elsewhere=offloaded,
        index=index if chunk.phase is Phase.SUCCEEDED else None,
        run=_read_run(status),
    )


def _read_run(status: JsonObject) -> ChunkRun | None:
    seconds = seconds_between(text(status, "startTime"), text(status, "completionTime"))
    if seconds is None:
        return None
    limit = opt_integer(child(status, "effective"), "executionTimeoutSeconds")
    # A clock that is set back while a chunk runs puts its end before its start.
    return ChunkRun(max(seconds, 0.0), integer(status, "attempt"), limit)


def _read_found_index(stored: Json) -> ItemIndex | None:
    """Return what an index job reports, None if no chunk could be cut by it."""
    try:
        return read_index(stored)
    except ValueError:
        return None
