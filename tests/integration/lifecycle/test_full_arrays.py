"""The fullest status that an array can have is within what the API server spends on its rules."""

from typing import Any

import pytest

from asyncjob.lifecycle.arrays.advance import MAX_CHUNK_RANGES
from asyncjob.models.array import MAX_ITEM_RANGES, MAX_PARALLELISM
from asyncjob.names import ARRAYS, array_status_path, collection_path
from support.cluster.api import Client
from support.forbidden import ForbiddenSetup
from support.in_memory.memory import MemoryClient
from support.objects.builders import array

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

NAME_LENGTH = 63
TOTAL = 10_000_000


def scattered(start: int, ranges: int) -> str:
    """Return interval notation of so many ranges of two items each."""
    return ",".join(f"{first}-{first + 1}" for first in range(start, start + 3 * ranges, 3))


def chunk(generation: int, **uid: str) -> dict[str, Any]:
    start = 1_000_000 + 1000 * generation
    return {
        "name": f"chunk-{generation}".ljust(NAME_LENGTH, "x"),
        "items": scattered(start, MAX_CHUNK_RANGES),
        "generation": generation,
        **uid,
    }


@pytest.fixture
def share(admin: Client) -> int:
    """Return by what full lists are divided: Google's runtime ends after 10,000 iterations."""
    return 2 if isinstance(admin, MemoryClient) else 1


def test_an_array_with_full_lists_is_written(shared_setup: ForbiddenSetup, share: int) -> None:
    space, name = shared_setup.space, "full-array"
    chunks, ranges = MAX_PARALLELISM // share, MAX_ITEM_RANGES // share
    body = array(name, items={"count": TOTAL}, parallelism=MAX_PARALLELISM)
    space.admin.create(collection_path(space.name, ARRAYS), body).object()
    items_of_chunk = 2 * MAX_CHUNK_RANGES
    next_item = chunks * items_of_chunk + 3 * 2 * ranges
    cut = {
        "phase": "Running",
        "total": TOTAL,
        "next": next_item,
        "open": [chunk(number) for number in range(1, chunks + 1)],
        "requeued": scattered(2_000_000, ranges),
        "suspects": [scattered(3_000_000 + 3 * at, 1) for at in range(ranges)],
        "failedItems": scattered(4_000_000, ranges),
        "failed": 2 * ranges,
        "generation": chunks,
    }
    path = array_status_path(space.name, name)
    shared_setup.operator.merge(path, {"status": cut}).object()

    _, *kept = [chunk(number, uid=f"uid-{number}") for number in range(1, chunks + 1)]
    counted = {
        "succeeded": items_of_chunk,
        "next": next_item + items_of_chunk,
        "open": [*kept, chunk(chunks + 1)],
        "generation": chunks + 1,
    }
    stored = shared_setup.operator.merge(path, {"status": counted}).object()
    assert stored["status"]["succeeded"] == items_of_chunk
