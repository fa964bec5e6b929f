"""What a worker says of itself in its Lease, for operator, gateway and other workers."""

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
