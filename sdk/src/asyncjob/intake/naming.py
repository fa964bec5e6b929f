"""Names that follow from keys, so that the API server, which holds names unique, holds keys unique.

A job with a deduplicationId is one of a row of jobs with that id. Their names count down, so that
the newest comes first in every list, which is sorted by name.
"""

import uuid
from typing import Final

from asyncjob.canonical import canonical, digest

_SPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "asyncjob.dev")
_DIGITS: Final = 9
_TOP: Final = 10**_DIGITS


def key_name(namespace: str, key: str) -> str:
    """Return the name, a UUID, of the job with this idempotencyKey in the namespace."""
    return _derived("idempotencyKey", namespace, key)


def stem(namespace: str, deduplication_id: str) -> str:
    """Return how the names of all jobs with this deduplicationId in the namespace begin."""
    return _derived("deduplicationId", namespace, deduplication_id)


def numbered_name(begin: str, number: int) -> str:
    """Return the name of the job of this number, from 1 on, among those with one id."""
    return f"{begin}-{_TOP - number:0{_DIGITS}d}"


def number_of(name: str, begin: str) -> int:
    """Return the number of a job among those with one id; 0 if its name is no such name."""
    before, _, rest = name.rpartition("-")
    if before != begin or len(rest) != _DIGITS or not (rest.isascii() and rest.isdigit()):
        return 0
    return _TOP - int(rest)


def label_of(key: str) -> str:
    """Return the label value that stands for a key or id, which may be longer than labels are."""
    return digest(key, 52)


def _derived(kind: str, namespace: str, value: str) -> str:
    return str(uuid.uuid5(_SPACE, canonical([kind, namespace, value]).decode()))
