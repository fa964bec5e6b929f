"""`H` in a schedule, and jitter: numbers that follow from what a thing is called.

All operators agree on them without a word, and a schedule made anew keeps them.
"""

import re
from hashlib import sha256
from typing import Final

from asyncjob_operator.core.cron.errors import BadScheduleError

H_RANGES: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 28),
    ("month", 1, 12),
    ("weekday", 0, 6),
)
"""What H stands for in each field; every month has a 28th."""

_H: Final = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?", re.IGNORECASE)


def stable_hash(seed: str, size: int) -> int:
    """Return a number from 0 to size - 1 that follows from the seed."""
    return int.from_bytes(sha256(seed.encode()).digest()[:8]) % size


def expand_h(fields: list[str], seed: str) -> list[str]:
    """Return the five fields with each H written out; raises BadScheduleError."""
    return [
        ",".join(_expand_item(item, index, seed) for item in field.split(","))
        for index, field in enumerate(fields)
    ]


def _expand_item(item: str, index: int, seed: str) -> str:
    found = _H.fullmatch(item)
    if not found:
        return item
    name, low, high = H_RANGES[index]
    if found[1] is not None:
        first, last = int(found[1]), int(found[2])
        top = 31 if name == "day" else high
        if not low <= first <= last <= top:
            raise BadScheduleError(
                f"spec.schedule: {name}: {item} is not a range within {low} to {top}"
            )
        low, high = first, last
    step = int(found[3]) if found[3] else 0
    if found[3] and not 0 < step <= high - low + 1:
        raise BadScheduleError(
            f"spec.schedule: {name}: the step of {item} is not within 1 to {high - low + 1}"
        )
    return _expand_values(f"{seed} {name}", low, high, step)


def _expand_values(seed: str, low: int, high: int, step: int) -> str:
    if not step:
        return str(low + stable_hash(seed, high - low + 1))
    return ",".join(str(value) for value in range(low + stable_hash(seed, step), high + 1, step))
