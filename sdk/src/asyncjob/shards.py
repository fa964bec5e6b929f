"""Shards: a number from 0 to 63 for each job, from its name, as the value of a label.

Many workers of a kind watch the jobs of a few shards each, so that not every worker is told of
every job. The label is a hint: any worker may claim any job, whatever stands in it.

The number is worked out twice, here and by a policy for jobs that are applied. CEL has no hash and
no way to the number of a character, so both take a character's place among those that a name
may have.
"""

from collections.abc import Iterable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.names import SHARD_LABEL

SHARDS: Final = 64
"""As many as a queue may have workers of a kind that are told of jobs apart from one another."""

_CHARACTERS: Final = "-.0123456789abcdefghijklmnopqrstuvwxyz"
_PRIME: Final = 8191
"""Sums are taken modulo this first. Of the numbers tried it spreads counted and random names."""

SHARD_EXPRESSION: Final = (
    f"string(object.metadata.name.split('').transformList(i, c, ('{_CHARACTERS}'.indexOf(c) + 1)"
    f" * (i * i + 7 * i + 11)).sum() % {_PRIME} % {SHARDS})"
)
"""CEL for the value of the label, which is that of `shard_of`."""


def shard_of(name: str) -> int:
    """Return the shard of a job, by its name."""
    # Squares, because names differ in their last digits: with weights that grow evenly the sums of
    # `job-12` and `job-21` differ by as little as those of `job-12` and `job-13`.
    weighted = (
        (_CHARACTERS.find(character) + 1) * (place * place + 7 * place + 11)
        for place, character in enumerate(name)
    )
    return sum(weighted) % _PRIME % SHARDS


def shard_label(name: str) -> JsonObject:
    """Return the label of a job to create, by its name; none for one that is yet to be named."""
    return {SHARD_LABEL: str(shard_of(name))} if name else {}


def in_shards(shards: Iterable[int]) -> str:
    """Return the label selector of the jobs in these shards."""
    return f"{SHARD_LABEL} in ({_listed(shards)})"


def in_no_shard() -> str:
    """Return the label selector of jobs without a shard, or with one that there is not."""
    return f"{SHARD_LABEL} notin ({_listed(range(SHARDS))})"


def _listed(shards: Iterable[int]) -> str:
    return ",".join(map(str, sorted(shards)))
