"""Sets of HTTP statuses as a job's author writes them: 201, "200-204", "2xx"."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_RANGE = re.compile(r"([1-5]\d\d)(?:-([1-5]\d\d))?", re.ASCII)
_CLASS = re.compile("([1-5])xx", re.IGNORECASE)


def statuses_of(text: int | str) -> range:
    """Return the statuses that one entry stands for; raises ValueError."""
    if match := _CLASS.fullmatch(str(text)):
        first = 100 * int(match[1])
        return range(first, first + 100)
    match = _RANGE.fullmatch(str(text))
    if match is None:
        raise ValueError(f'{text!r} is no status: write 201, "200-204" or "2xx"')
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError(f"{text!r} ends before it begins")
    return range(first, last + 1)


def _check_status(text: int | str) -> int | str:
    statuses_of(text)
    return text


Statuses = Annotated[
    tuple[Annotated[int | str, AfterValidator(_check_status)], ...], Field(max_length=100)
]


def contains_status(statuses: Statuses, status: int) -> bool:
    """Return whether a status is among them."""
    return any(status in statuses_of(entry) for entry in statuses)
