"""Names that become part of a path: what cannot be a name is not even asked for."""

import re
from collections.abc import Callable
from typing import Final

from asyncjob.errors import AsyncJobError
from asyncjob.models.base import NAME_PATTERN

NotFoundErrorFactory = Callable[[str], AsyncJobError]
"""Makes the error for something that does not exist."""

MAX_NAME_LENGTH: Final = 253

_NAME_PATTERN: Final = re.compile(NAME_PATTERN.strip("^$"))


def check_name(name: str, missing: NotFoundErrorFactory) -> str:
    """Return the name; raises `missing` for one that nothing can have."""
    if len(name) > MAX_NAME_LENGTH or not _NAME_PATTERN.fullmatch(name):
        raise missing(f"{name[:MAX_NAME_LENGTH]!r} is no name that anything can have")
    return name
