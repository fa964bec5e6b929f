"""Reads the registration that a worker keeps in its Lease: queue, slots and handler types.

Operator, gateway and other workers all read it.
"""

import orjson

from asyncjob.json_types import JsonObject, as_object, child, text
from asyncjob.names import WORKER_ANNOTATION


def read_registration(lease: JsonObject) -> JsonObject:
    """Return what a worker's Lease says of it; nothing where that cannot be read."""
    said = text(child(child(lease, "metadata"), "annotations"), WORKER_ANNOTATION)
    try:
        return as_object(orjson.loads(said))
    except orjson.JSONDecodeError:
        return {}
