"""Queues of the fake cluster: the defaults that jobs inherit. Limits are refused, not ignored."""

from typing import Final

from asyncjob.json_types import Json, JsonObject, child, opt_integer, text
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.testing.errors import NotFakedError
from asyncjob.testing.manifests import read_queue_manifest

_SUPPORTED_QUEUE_FIELDS: Final = {"defaults": None, "paused": False, "unknownType": "Wait"}


class QueueStore:
    """AsyncQueues by name; a queue without one is open and unlimited."""

    def __init__(self) -> None:
        self._specs: dict[str, JsonObject] = {}

    def apply(self, manifest: JsonObject) -> None:
        """Take an AsyncQueue; raises InvalidError, or NotFakedError for what is not heeded."""
        spec = read_queue_manifest(manifest)
        for field, value in spec.items():
            if field not in _SUPPORTED_QUEUE_FIELDS or not _is_supported_value(field, value):
                raise NotFakedError(
                    f"the fake cluster does not heed {field} of an AsyncQueue, only defaults: "
                    "test it on a real API server"
                )
        self._specs[text(child(manifest, "metadata"), "name")] = spec

    def policy_layer(self, queue: str) -> PolicyLayer:
        """Return what the queue says about the policy of its jobs."""
        return read_policy_layer(self._defaults(queue))

    def queue_timeout(self, queue: str) -> int | None:
        """Return how long its jobs may wait, in seconds."""
        return opt_integer(self._defaults(queue), "queueTimeoutSeconds")

    def cancel_grace(self, queue: str) -> int | None:
        """Return how long its handlers may take to stop, in seconds."""
        return opt_integer(self._defaults(queue), "cancelGraceSeconds")

    def _defaults(self, queue: str) -> JsonObject:
        return child(self._specs.get(queue, {}), "defaults")


def _is_supported_value(field: str, value: Json) -> bool:
    return _SUPPORTED_QUEUE_FIELDS[field] is None or value == _SUPPORTED_QUEUE_FIELDS[field]
