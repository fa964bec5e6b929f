"""How far the watch of jobs has come: whoever was created before is known here by then."""

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.observe.store import is_newer


class WatchPosition:
    """By namespace. Events of one watch come in the order of their versions."""

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}

    def observe(self, obj: JsonObject) -> None:
        """Take the job of an event of the watch, and of nothing else."""
        meta = child(obj, "metadata")
        namespace, version = text(meta, "namespace"), text(meta, "resourceVersion")
        if is_newer(version, self._newest.get(namespace, "0")):
            self._newest[namespace] = version

    def has_reached(self, namespace: str, version: str) -> bool:
        """Return whether all that was written up to this version has been seen."""
        newest = self._newest.get(namespace, "")
        comparable = newest.isdecimal() and version.isdecimal()
        return comparable and not is_newer(version, newest)
