"""A session to an API server that is a dict: conditional writes, and failures on demand."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from asyncjob.deep_json import encode
from asyncjob.errors import AlreadyExistsError, ConflictError, ObjectNotFoundError

Object = dict[str, Any]


class FakeSession:
    """Objects by path. `fail` maps a method and path to an error, raised once or, kept, always.

    `before_write` is called with the path of each write, to let somebody else be quicker.
    """

    def __init__(self, objects: Mapping[str, Object] | None = None) -> None:
        self.objects: dict[str, Object] = dict(objects or {})
        self.requests: list[tuple[str, str, Any]] = []
        self.failures: dict[tuple[str, str], Exception] = {}
        self.before_write: Any = lambda _path: None
        self._version = 1000

    @property
    def writes(self) -> list[tuple[str, str, Any]]:
        """The requests that were to change something."""
        return [request for request in self.requests if request[0] != "GET"]

    def fail(self, method: str, path: str, error: Exception) -> None:
        """Answer such requests with an error from now on."""
        self.failures[method, path] = error

    def put(self, path: str, obj: Object) -> Object:
        """Store an object as a new version."""
        self._version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self.objects[path] = stored
        return stored

    async def get(self, path: str, _params: Any = None) -> Object:
        self._note("GET", path, None)
        if path not in self.objects:
            raise ObjectNotFoundError(status=404)
        return self.objects[path]

    async def create(self, path: str, body: Object, _params: Any = None) -> Object:
        self._note("POST", path, body)
        target = f"{path}/{body['metadata']['name']}"
        if target in self.objects:
            raise AlreadyExistsError(status=409)
        return self.put(target, body)

    async def merge_patch(self, path: str, body: Object, _params: Any = None) -> Object:
        self._note("PATCH", path, body)
        obj = self._current(path, body.get("metadata", {}).get("resourceVersion"))
        return self.put(self._target(path), _merged(obj, {**body, "metadata": {}}))

    async def delete(self, path: str, body: Object | None = None) -> Object:
        self._note("DELETE", path, body)
        self._current(path, (body or {}).get("preconditions", {}).get("resourceVersion"))
        return self.objects.pop(path)

    async def list(
        self,
        path: str,
        params: Any = None,
        *,
        accept: str = "",  # noqa: ARG002  # objects are given whole
    ) -> AsyncIterator[Object]:
        self._note("GET", path, None)
        selector = (params or {}).get("labelSelector", "")
        for key, obj in list(self.objects.items()):
            if key.startswith(path + "/") and _selected(obj, selector):
                yield obj

    async def pages(
        self,
        path: str,
        params: Any = None,
        *,
        accept: str = "",  # noqa: ARG002  # objects are given whole
    ) -> AsyncIterator[Object]:
        """Answer with one page that has all there is, as of the newest version."""
        found = [obj async for obj in self.list(path, params)]
        yield {"metadata": {"resourceVersion": str(self._version)}, "items": found}

    def _note(self, method: str, path: str, body: Any) -> None:
        if body is not None:
            encode(body)  # as a session does, which sends nothing of what is too deep
        self.requests.append((method, path, body))
        if method != "GET":
            self.before_write(path)
        if (method, path) in self.failures:
            raise self.failures[method, path]

    def _current(self, path: str, version: str | None) -> Object:
        if self._target(path) not in self.objects:
            raise ObjectNotFoundError(status=404)
        obj = self.objects[self._target(path)]
        if version is not None and obj["metadata"]["resourceVersion"] != version:
            raise ConflictError(status=409)
        return obj

    @staticmethod
    def _target(path: str) -> str:
        return path.removesuffix("/status")


def _selected(obj: Object, selector: str) -> bool:
    """Return whether `key in (a,b)` selects the object; of other selectors all are selected."""
    key, found, values = selector.partition(" in ")
    labels = obj["metadata"].get("labels", {})
    return not found or labels.get(key) in values.strip("()").split(",")


def _merged(obj: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(obj, dict):
        return patch
    merged = dict(obj)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(obj.get(key, {}), value)
    return merged
