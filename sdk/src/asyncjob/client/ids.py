"""Names that become part of a path: what cannot be a name is not even asked for."""

import re
from collections.abc import Callable
from typing import Final

from asyncjob.errors import AsyncJobError
from asyncjob.models.base import NAME_PATTERN

Missing = Callable[[str], AsyncJobError]
"""Makes the error for something that does not exist."""

LONGEST: Final = 253

_NAME: Final = re.compile(NAME_PATTERN.strip("^$"))


def checked(name: str, missing: Missing) -> str:
    """Return the name; raises `missing` for one that nothing can have."""
    if len(name) > LONGEST or not _NAME.fullmatch(name):
        raise missing(f"{name[:LONGEST]!r} is no name that anything can have")
    return name
