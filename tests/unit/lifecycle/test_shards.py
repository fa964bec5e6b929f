"""The shard of a job: a number that follows from its name."""

import uuid
from collections import Counter
from collections.abc import Sequence

import pytest

from asyncjob.names import SHARD_LABEL
from asyncjob.shards import SHARDS, in_no_shard, in_shards, shard_label, shard_of


def test_shards_of_names_stay_as_they_were() -> None:
    """The label of a job that is there was worked out by an earlier release, maybe."""
    assert [shard_of(name) for name in ("a", "job-1", "nightly-20261121t0300z")] == [15, 14, 5]


@pytest.mark.parametrize(
    "names",
    [
        [f"job-{number}" for number in range(6400)],
        [f"of-1000-{number:05d}" for number in range(6400)],
        [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(6400)],
        [
            f"nightly-2026{n % 12 + 1:02d}{n % 28 + 1:02d}t{n % 24:02d}{n % 60:02d}z"
            for n in range(840)
        ],
    ],
    ids=["counted", "padded", "random", "scheduled"],
)
def test_names_are_spread_over_all_shards(names: Sequence[str]) -> None:
    counts = Counter(map(shard_of, names))
    share = len(names) / SHARDS
    assert len(counts) == SHARDS
    assert max(counts.values()) < 2 * share


def test_a_job_without_a_name_has_no_label() -> None:
    assert shard_label("") == {}
    assert shard_label("job-1") == {SHARD_LABEL: str(shard_of("job-1"))}


def test_selectors_name_shards_in_their_order() -> None:
    assert in_shards({40, 3}) == "asyncjob.dev/shard in (3,40)"
    assert in_no_shard().startswith("asyncjob.dev/shard notin (0,1,2,")
    assert in_no_shard().endswith(",62,63)")
