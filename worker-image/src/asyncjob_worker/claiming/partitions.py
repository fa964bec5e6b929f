"""Which worker of those that know a job claims it first: by rendezvous hashing of its partition."""

import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import add, gt

PARTITIONS = 1024
"""Jobs are hashed into this many partitions. When workers come or go, only the ranks of the
partitions are computed again, however many jobs there are."""

Ranks = Sequence[int]
"""For each partition, how many workers come before this one."""


def assign_partitions(worker: str, workers: Iterable[str]) -> Ranks:
    """Return this worker's rank for each partition: 0 where it owns the jobs."""
    own_scores, ranks = _scores(worker), [0] * PARTITIONS
    for other in {*workers} - {worker}:
        ranked_higher = map(gt, _scores(other), own_scores)
        ranks = list(map(add, ranks, ranked_higher))
    return ranks


# Bounded: at 45 KB each, the scores of workers long gone took up to 184 MB.
@lru_cache(maxsize=128)
def _scores(worker: str) -> Sequence[int]:
    """Return a worker's score for each partition; the worker with the highest has rank 0."""
    # Not a checksum: being linear, it would give some workers no partition at all.
    digest = hashlib.shake_128(worker.encode()).digest(PARTITIONS * 8)
    return struct.unpack(f"{PARTITIONS}Q", digest)


def partition_of(name: str) -> int:
    """Return the partition of a job, by its name."""
    return zlib.crc32(name.encode()) % PARTITIONS
