"""AsyncArray: one handler run over many items, in chunks that are ordinary jobs."""

from typing import Annotated, Literal

from pydantic import Field

from asyncjob.lifecycle.arrays.chunk_size import MAX_SIZE
from asyncjob.lifecycle.arrays.chunks import DEFAULT_ITEM_RETRIES, DEFAULT_PARALLELISM
from asyncjob.lifecycle.arrays.item_index import MAX_OFFSETS, MAX_RECORDS, MAX_VERSION_LENGTH
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.records import RecordFormat
from asyncjob.lifecycle.policy import MAX_PRIORITY
from asyncjob.models.base import (
    CategoryName,
    Count,
    FreeJson,
    Model,
    ObjectMeta,
    ObjectName,
    QueueName,
    RetryPolicy,
    Seconds,
    Timestamp,
    Uid,
)
from asyncjob.models.job import Dependency
from asyncjob.models.job_status import Condition, StatusMessage

MAX_ITEMS = MAX_RECORDS
"""The most items of one array."""

MAX_INLINE_ITEMS = 10_000
"""The most items that stand in the array itself."""

MAX_INLINE_BYTES = 256 * 1024
"""The most bytes of all items that stand in the array itself, as JSON."""

MAX_SHARED_PAYLOAD_BYTES = 64 * 1024
"""The most bytes of what all items of an array share, as JSON."""

MAX_CHUNK_SIZE = MAX_SIZE
"""The most items of one chunk."""

MAX_PARALLELISM = 100
"""The most unfinished chunks of one array."""

MAX_ITEM_RETRIES = 100
"""The most retries of one item within an attempt of its chunk."""

MAX_RESULTS_URI_LENGTH = 1024
"""The most characters of the folder that results go to: there are names below it."""

MAX_ITEM_RANGES = 1000
"""The most ranges in which the failed items of an array, and those to be run again, are kept."""

_RANGE = "[0-9]{1,8}(-[0-9]{1,8})?"

ItemNotation = Annotated[
    str, Field(max_length=18 * MAX_ITEM_RANGES, pattern=f"^({_RANGE}(,{_RANGE})*)?$")
]
"""Numbers of items in interval notation: `17,400-402`."""

ArrayItemType = Annotated[
    str, Field(min_length=1, max_length=122, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$")
]
"""A job type with room for the suffix of chunks."""


class ItemsSource(Model):
    """A file whose records are the items."""

    uri: Annotated[str, Field(min_length=1, max_length=2048)]
    """The file, in a folder or store that workers read payloads from, e.g. s3://bucket/a.jsonl"""

    format: RecordFormat | None = None
    """JSONLines: a line is an item. CSV: a row is an item, by the names in the first row. Default:
    CSV if the name ends in .csv, else JSONLines."""

    version: Annotated[str, Field(min_length=1, max_length=MAX_VERSION_LENGTH)] | None = None
    """The version that items.skip is about, as status.index.version has it: the array fails if the
    file has another one. Default: any."""


class ArrayItems(Model):
    """The items. Set exactly one of count, inline and from."""

    count: Annotated[int, Field(ge=1, le=MAX_ITEMS)] | None = None
    """Number of items; the handler gets the number of the item, from 0."""

    inline: Annotated[list[FreeJson], Field(min_length=1, max_length=MAX_INLINE_ITEMS)] | None = (
        None
    )
    """The items themselves: any JSON, at most 256 KiB in all."""

    from_: ItemsSource | None = Field(default=None, alias="from")
    """A file whose records are the items. It must not change while the array runs."""

    skip: ItemNotation | None = None
    """Numbers of items that are done already: `0-399,402`. They are not run, and count as
    succeeded."""


class ArrayResults(Model):
    """Where the results of the items go."""

    uri: Annotated[str, Field(min_length=1, max_length=MAX_RESULTS_URI_LENGTH)]
    """A folder in the store of the workers, results/NAMESPACE or below it, e.g.
    s3://bucket/jobs/results/default. The results of this array are in a folder of it that is named
    by the array's UID."""


class ArrayOptions(Model):
    """Type, items and options of an array: what its spec and a submission have in common."""

    type: ArrayItemType
    """Type of the item handler."""

    queue: QueueName = "default"
    """Name of the queue in which the chunks wait."""

    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Priority of the chunks."""

    payload: FreeJson | None = None
    """What all items share: any JSON, at most 64 KiB. It is copied into each chunk."""

    items: ArrayItems
    """The items."""

    not_before: Timestamp | None = None
    """The array does not start before this time."""

    depends_on: Annotated[list[Dependency], Field(max_length=20)] | None = None
    """Jobs and arrays that must finish first. They may be created later than this array."""

    chunk_size: Annotated[int, Field(ge=1, le=MAX_CHUNK_SIZE)] | None = None
    """Number of items in a chunk. Default: it adapts, so that a chunk takes about 30 seconds."""

    parallelism: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] = DEFAULT_PARALLELISM
    """Maximum number of unfinished chunks."""

    item_retries: Annotated[int, Field(ge=0, le=MAX_ITEM_RETRIES)] = DEFAULT_ITEM_RETRIES
    """How often a failing item is tried again before it counts as failed."""

    results: ArrayResults | None = None
    """Where what the items return goes, as JSON lines. Default: it is not kept."""

    item_timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """Time limit of one try of one item, in seconds. Default: none."""

    max_failed: Annotated[int, Field(ge=0, le=MAX_ITEMS)] | None = None
    """Number of failed items with which the array still succeeds. With more, no new chunk is
    created and the array fails. Default: all items are tried, and the array fails if one has."""

    max_failed_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """The same in percent of all items. Excludes maxFailed."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt of a chunk, in seconds. Built in: 1800."""

    queue_timeout_seconds: Seconds | None = None
    """A chunk that is claimable for longer than this is replaced by another one; none of its items
    fails by that. Built in: 7200."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """A chunk is recovered after this many seconds without a heartbeat. Built in: 60."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Seconds that a running chunk has to stop after cancel. Built in: 30."""

    retry_policy: RetryPolicy | None = None
    """When and how often a failed attempt of a chunk is retried, and the delays between the tries
    of an item, which are at most 60 seconds."""

    ttl_seconds_after_finished: Seconds | None = None
    """Seconds after which the finished array is deleted. Default: it is kept."""

    suspend: bool | None = None
    """While true, no chunk is created or claimed. Chunks that run continue."""


class AsyncArraySpec(ArrayOptions):
    """What to run. Immutable except suspend, cancel and redrive."""

    cancel: bool | None = None
    """Cancels the array and its chunks. Cannot be reverted."""

    redrive: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Increase it to run the failed items of a failed array again."""


class FileIndex(Model):
    """What the index job has found in the file of the items."""

    records: Count
    """Number of records, each of which is an item."""

    size_bytes: Annotated[int, Field(ge=0)]
    """Size of the file."""

    version: Annotated[str, Field(min_length=1, max_length=MAX_VERSION_LENGTH)]
    """What tells the file from a changed one: its entity tag, or when it was modified."""

    every: Annotated[int, Field(ge=1)]
    """Each record that is a multiple of this has its offset in offsets."""

    offsets: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_OFFSETS)]
    """Where in the file these records begin, in bytes."""


class OpenChunk(Model):
    """A chunk under way."""

    name: ObjectName
    """Name of its job."""

    uid: Uid | None = None
    """UID of its job, once the job is known to exist."""

    items: ItemNotation
    """The items of the chunk. Empty: it is the job that finds the records of the file."""

    generation: Count
    """How many chunks had been cut when this one was."""

    suspect: bool | None = None
    """True if a worker died, or the time limit passed, while these items ran: the chunk is not
    tried again as a whole."""


class ItemFailure(Model):
    """Why an item failed."""

    item: Count
    """Number of the item."""

    type: Annotated[str, Field(max_length=256)]
    """Type of the exception, or what became of the chunk."""

    category: CategoryName
    """Category of the error."""

    message: Annotated[str, Field(max_length=512)]
    """Message of the error."""


class AsyncArrayStatus(Model):
    """Observed state of the array. Its size does not depend on how many items there are."""

    phase: ArrayPhase = ArrayPhase.PENDING
    """Pending, Running, Succeeded, Failed or Cancelled."""

    reason: ArrayReason | None = None
    """Why the array is in this phase."""

    message: StatusMessage | None = None
    """Explanation of the reason."""

    total: Count | None = None
    """Number of items. 0 until the index job has found those of a file."""

    index: FileIndex | None = None
    """What the index job has found in the file of the items."""

    next: Count | None = None
    """All items below this number have been put into a chunk."""

    succeeded: Count | None = None
    """Number of items that are done."""

    failed: Count | None = None
    """Number of items that have failed."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Share of the items that are done or have failed, in percent."""

    items_per_minute: Count | None = None
    """Number of items run in a minute, measured over the last minute, or over the last chunks where
    these take longer. Only while the array goes on."""

    expected_end_time: Timestamp | None = None
    """When the array ends if it goes on at this rate."""

    open: Annotated[list[OpenChunk], Field(max_length=MAX_PARALLELISM)] | None = None
    """The chunks under way."""

    open_count: Count | None = None
    """Number of chunks under way."""

    requeued: ItemNotation | None = None
    """Items below next that are in no chunk: redriven, or of a chunk that was lost."""

    suspects: Annotated[list[ItemNotation], Field(max_length=MAX_ITEM_RANGES)] | None = None
    """Like requeued, but parts of chunks that ended by crashes or the time limit. One of them is
    run at a time, and halved until the item that ends its worker stands alone."""

    failed_items: ItemNotation | None = None
    """Numbers of the failed items."""

    failed_unlisted: Count | None = None
    """Number of failed items that failedItems has no room for. They cannot be redriven."""

    errors: Annotated[list[ItemFailure], Field(max_length=20)] | None = None
    """The newest errors of items."""

    generation: Count | None = None
    """Number of chunks cut so far."""

    chunk_size: Annotated[int, Field(ge=1, le=MAX_CHUNK_SIZE)] | None = None
    """Number of items that the next chunks get, where spec.chunkSize is left out. The last chunks
    are smaller."""

    writer: Annotated[str, Field(max_length=256)] | None = None
    """Identity of the operator that creates the chunks of open without a uid."""

    claims: Count | None = None
    """How often an operator has made itself the writer."""

    redrives: Count | None = None
    """The last value of spec.redrive acted on."""

    admitted: bool | None = None
    """Set by the operator with the first chunk of an array with notBefore or dependsOn."""

    start_time: Timestamp | None = None
    """When the first chunk was cut."""

    completion_time: Timestamp | None = None
    """When the array ended."""

    conditions: Annotated[list[Condition], Field(max_length=8)] | None = None
    """Complete, Failed or Cancelled, once the array has ended."""


class AsyncArray(Model):
    """Runs an item handler over many items."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncArray"] = "AsyncArray"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncArraySpec
    """What to run."""

    status: AsyncArrayStatus = Field(default_factory=AsyncArrayStatus)
    """Observed state of the array."""
