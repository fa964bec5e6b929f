"""AsyncQueues and the Leases that workers announce themselves by, as the watch shows them."""

from collections.abc import Sequence

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.watch import WatchEvent


class ObjectCache:
    """The objects of one small collection in one namespace, by name."""

    def __init__(self) -> None:
        self.synced = False
        self.by_name: dict[str, JsonObject] = {}

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection anew."""
        self.by_name = {_name_of(obj): obj for obj in objects}
        self.synced = True

    def apply(self, event: WatchEvent) -> None:
        """Take one change."""
        if event.type == "DELETED":
            self.by_name.pop(_name_of(event.object), None)
        else:
            self.by_name[_name_of(event.object)] = event.object


def _name_of(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "name")
