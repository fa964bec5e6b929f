"""Names that follow from keys, so that the API server, which holds names unique, holds keys unique.

A job with a deduplicationId is one of a row of jobs with that id. Their names count down, so that
the newest comes first in every list, which is sorted by name.
"""

import uuid
from typing import Final

from asyncjob.canonical import canonical_json, digest

_UUID_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "asyncjob.dev")
_SEQUENCE_DIGITS: Final = 9
_SEQUENCE_LIMIT: Final = 10**_SEQUENCE_DIGITS


def key_name(namespace: str, key: str) -> str:
    """Return the name, a UUID, of the job with this idempotencyKey in the namespace."""
    return _derived_uuid("idempotencyKey", namespace, key)


def dedup_name_prefix(namespace: str, deduplication_id: str) -> str:
    """Return how the names of all jobs with this deduplicationId in the namespace begin."""
    return _derived_uuid("deduplicationId", namespace, deduplication_id)


def sequence_name(prefix: str, sequence: int) -> str:
    """Return the name of the job of this number, from 1 on, among those with one id."""
    return f"{prefix}-{_SEQUENCE_LIMIT - sequence:0{_SEQUENCE_DIGITS}d}"


def sequence_of(name: str, prefix: str) -> int:
    """Return the number of a job among those with one id; 0 if its name is no such name."""
    before, _, rest = name.rpartition("-")
    if before != prefix or len(rest) != _SEQUENCE_DIGITS or not (rest.isascii() and rest.isdigit()):
        return 0
    return _SEQUENCE_LIMIT - int(rest)


def key_label_value(key: str) -> str:
    """Return the label value that stands for a key or id, which may be longer than labels are."""
    return digest(key, 52)


def _derived_uuid(kind: str, namespace: str, value: str) -> str:
    return str(uuid.uuid5(_UUID_NAMESPACE, canonical_json([kind, namespace, value]).decode()))
