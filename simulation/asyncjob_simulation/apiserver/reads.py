"""Reading: objects, lists in pages as of one version, and where a watch begins."""

import base64
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from asyncjob_simulation.apiserver.errors import StatusError, bad_request, not_found
from asyncjob_simulation.apiserver.forms import Form, requested_form
from asyncjob_simulation.apiserver.resources import Resource, Target
from asyncjob_simulation.apiserver.selectors import Predicate, field_selector, label_selector
from asyncjob_simulation.apiserver.storage import Collection, Key, Storage
from asyncjob_simulation.apiserver.watches import Watch

Object = dict[str, Any]
Query = Mapping[str, str]

_AFTER_ALL_NAMES: Final = "\U0010ffff"


class Reader:
    """Answers GET requests from the storage."""

    def __init__(self, storage: Storage, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._clock = clock

    def get(self, target: Target) -> Object:
        """Return an object; raises StatusError if it is not there."""
        obj = self._storage.get(target.resource.key, (target.namespace, target.name))
        if obj is None:
            raise not_found(target.resource.qualified, target.name)
        return obj

    def form(self, resource: Resource, accept: str, query: Query) -> Form:
        """Return the form that a request asks for."""
        include = query.get("includeObject", "Metadata")
        return Form(resource, requested_form(accept), include, self._clock)

    def list_objects(self, target: Target, query: Query, form: Form) -> Object:
        """Return a list, or a page of one."""
        selects = _selection(target, query)
        token, limit = query.get("continue", ""), int(query.get("limit") or 0)
        version, start = _read_token(token) if token else (self._list_version(query), None)
        collection = self._storage.collection(target.resource.key)
        keys, objects = self._keys(collection, version, target, start)
        found: list[Object] = []
        rest, left = "", 0
        for number, key in enumerate(keys):
            if limit and len(found) == limit:
                rest, left = _token(version, key), len(keys) - number
                break
            if selects(objects[key]):
                found.append(objects[key])
        metadata: Object = {"continue": rest, "resourceVersion": str(version)}
        if rest and "labelSelector" not in query and "fieldSelector" not in query:
            metadata["remainingItemCount"] = left
        return form.many(found, metadata)

    def _keys(
        self, collection: Collection, version: int, target: Target, start: Key | None
    ) -> tuple[list[Key], Mapping[Key, Object]]:
        """Return keys in their order from the start on, and the objects as of the version."""
        objects = collection.at(version)
        keys = collection.keys if objects is collection.objects else sorted(objects)
        begin, end = 0, len(keys)
        if target.namespace:
            begin = bisect_left(keys, (target.namespace, ""))
            end = bisect_left(keys, (target.namespace, _AFTER_ALL_NAMES))
        if start is not None:
            begin = max(begin, bisect_left(keys, start))
        return keys[begin:end], objects

    def _list_version(self, query: Query) -> int:
        wanted = self._version(query)
        if query.get("resourceVersionMatch") == "Exact":
            return wanted
        return self._storage.version

    def _version(self, query: Query) -> int:
        text = query.get("resourceVersion") or "0"
        if not text.isdigit():
            words = f'strconv.ParseUint: parsing "{text}": invalid syntax'
            raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": {words}')
        if int(text) > self._storage.version and "watch" not in query:
            current = self._storage.version
            words = f"Timeout: Too large resource version: {text}, current: {current}"
            raise StatusError(504, "Timeout", words, details={"retryAfterSeconds": 1})
        return int(text)

    def watch(self, target: Target, query: Query, form: Form) -> Watch:
        """Return a watch; without a version it begins with all that is there."""
        selects = _selection(target, query)
        version = self._version(query)
        collection = self._storage.collection(target.resource.key)
        initial: list[Object] | None = None
        if version:
            place = collection.place_after(version)
        else:
            place = collection.end
            keys, objects = self._keys(collection, self._storage.version, target, None)
            initial = [objects[key] for key in keys if selects(objects[key])]
        selector = f"{query.get('labelSelector', '')}/{query.get('fieldSelector', '')}"
        return Watch(
            collection,
            form,
            selects,
            namespace=target.namespace,
            place=place,
            version=self._storage.version,
            has_bookmarks=query.get("allowWatchBookmarks") == "true",
            initial=initial,
            selector=selector,
        )


def _selection(target: Target, query: Query) -> Predicate:
    labels = label_selector(query.get("labelSelector", ""))
    text = query.get("fieldSelector", "")
    if target.name:
        text = f"{text},metadata.name={target.name}".lstrip(",")
    fields = field_selector(text, target.resource.selectable)
    if not text:
        return labels
    return lambda obj: labels(obj) and fields(obj)


def _token(version: int, start: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *start])).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return int(version), (namespace, name)
