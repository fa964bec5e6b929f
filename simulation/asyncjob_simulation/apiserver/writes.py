"""Writing: create, update, patch and delete, through schema, rules, policies and field tracking.

The order is that of a real API server: drop unknown fields, fill in defaults, keep what this
request may not change, compare versions, have policies change it, validate by schema and its rules,
ask the policies, store.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob_simulation.apiserver.admission import Admission, Write
from asyncjob_simulation.apiserver.encoding import encode
from asyncjob_simulation.apiserver.errors import (
    StatusError,
    bad_request,
    changed,
    conflict,
    invalid,
    not_found,
)
from asyncjob_simulation.apiserver.field_manager import FieldManager
from asyncjob_simulation.apiserver.identities import Identity
from asyncjob_simulation.apiserver.resources import RBAC_GROUP, Resource, Target
from asyncjob_simulation.apiserver.schema import Findings
from asyncjob_simulation.apiserver.storage import Storage
from asyncjob_simulation.apiserver.timestamps import whole_seconds

Object = dict[str, Any]

MAX_STORED_BYTES: Final = 1_572_864
"""What etcd takes of one object."""

_MAX_GENERATED_PREFIX: Final = 58
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_NAME: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_NAME_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_MAX_NAME: Final = 253
_METADATA: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)
_KEPT_ON_UPDATE: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_GRACE_SECONDS: Final = 30


@dataclass(slots=True)
class Caller:
    """Who writes, and how; `warnings` are told with the answer."""

    identity: Identity
    manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)


Transform = Callable[[Object], Object]


class Writer:
    """Carries writes out. `seed` makes UIDs and generated names, the same for the same writes."""

    def __init__(
        self, storage: Storage, admission: Admission, clock: Callable[[], float], seed: int
    ) -> None:
        self._storage = storage
        self._admission = admission
        self._clock = clock
        self._seed = seed
        self._made = 0
        self._unsaved: set[str] = set()
        """Objects whose status is still only a default: the next update is stored in any case."""

        self._field_managers: dict[tuple[str, str, int], FieldManager] = {}

    def new_id(self) -> str:
        """Return an identifier in the form of a UUID."""
        digits = self._digest().hex()
        parts = digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:32]
        return "-".join(parts)

    def _digest(self) -> bytes:
        self._made += 1
        return hashlib.sha256(f"{self._seed}/{self._made}".encode()).digest()

    # ---- create

    def create(self, target: Target, body: Any, caller: Caller) -> Object:
        """Create an object and return it; raises StatusError."""
        resource = target.resource
        obj = self._decoded(resource, body, caller)
        metadata = obj["metadata"]
        self._check_namespace(target, metadata)
        is_named = "name" in metadata
        if not is_named and metadata.get("generateName"):
            metadata["name"] = self._generated(target, metadata["generateName"])
        metadata = {
            **metadata,
            "creationTimestamp": whole_seconds(self._clock()),
            **({} if resource.schema is None else {"generation": 1}),
            "uid": self.new_id(),
        }
        for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(name, None)
        obj["metadata"] = metadata
        if resource.has_status and resource.schema is not None:
            obj.pop("status", None)
        if resource.plural == "namespaces":
            labels = metadata.get("labels") or {}
            metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata["name"]}
        self._track(resource, obj, None, caller, "")
        write = Write(
            "CREATE",
            resource,
            "",
            target.namespace,
            metadata.get("name", ""),
            obj,
            None,
            caller.identity,
            caller.dry_run,
        )
        self._admission.change(obj, write, is_named=is_named)
        self._validate(resource, obj, None)
        key = target.namespace, metadata["name"]
        self._admission.check(write)
        if self._storage.get(resource.key, key) is not None:
            what = f'{resource.qualified} "{metadata["name"]}" already exists'
            raise StatusError(409, "AlreadyExists", what)
        _check_size(obj)
        shown = obj if resource.schema is None else resource.schema.defaulted(obj)
        if caller.dry_run:
            return shown
        stored = self._storage.put(resource.key, key, shown)
        if "status" in shown and "status" not in obj:
            self._unsaved.add(stored["metadata"]["uid"])
        return stored

    def _decoded(
        self, resource: Resource, body: Any, caller: Caller, old: Object | None = None
    ) -> Object:
        """Return an object of the resource: without unknown fields, with defaults.

        Parts that are the very same as in `old` have been through this already.
        """
        if not isinstance(body, dict):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind})"
            )
        kind = body.get("kind") or resource.kind
        version = body.get("apiVersion") or resource.api_version
        if resource.schema is not None and kind != resource.kind:
            words = [f'kind: Invalid value: "{kind}": must be {resource.kind}']
            name = (body.get("metadata") or {}).get("name", "")
            raise invalid(f'{kind}.{resource.group} "{name}"', words)
        obj = {"apiVersion": version, "kind": kind, **body}
        obj["apiVersion"], obj["kind"] = version, kind
        obj["metadata"] = _metadata(body.get("metadata"))
        schema = resource.schema
        if schema is None:
            return obj
        done = [name for name, value in obj.items() if old is not None and value is old.get(name)]
        kept = dict.fromkeys(("apiVersion", "kind", "metadata", *done))
        fields = {name: obj.pop(name) for name in kept}
        unknown: list[str] = []
        pruned = schema.pruned(obj, "", unknown, old)
        if unknown and caller.field_validation == "Strict":
            listed = ", ".join(f'unknown field "{one}"' for one in unknown)
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                f"{resource.kind}: strict decoding error: {listed}"
            )
        if caller.field_validation == "Warn":
            caller.warnings += [f'unknown field "{one}"' for one in unknown]
        return {**schema.defaulted(pruned), **fields}

    def _check_namespace(self, target: Target, metadata: Object) -> None:
        if not target.resource.namespaced:
            return
        given = metadata.setdefault("namespace", target.namespace)
        if given != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        if self._storage.get(("", "namespaces"), ("", given)) is None:
            raise not_found("namespaces", given)

    def _generated(self, target: Target, prefix: str) -> str:
        while True:
            digest = self._digest()
            suffix = "".join(
                _SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:_SUFFIX_LENGTH]
            )
            name = f"{prefix[:_MAX_GENERATED_PREFIX]}{suffix}"
            if self._storage.get(target.resource.key, (target.namespace, name)) is None:
                return name

    # ---- update

    def update(self, target: Target, transform: Transform, caller: Caller) -> Object:
        """Store what `transform` makes of the object; an update that changes nothing is none."""
        resource, key = target.resource, (target.namespace, target.name)
        old = self._storage.get(resource.key, key)
        if old is None:
            raise not_found(resource.qualified, target.name)
        asked = self._decoded(resource, transform(old), caller, old)
        self._check_identity(target, asked["metadata"], old["metadata"])
        new = _narrowed(resource, target.subresource, asked, old)
        if resource.schema is not None and _content(new) != _content(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        self._track(resource, new, old, caller, target.subresource)
        self._validate(resource, new, old)
        write = Write(
            "UPDATE",
            resource,
            target.subresource,
            target.namespace,
            target.name,
            new,
            old,
            caller.identity,
            caller.dry_run,
        )
        self._admission.check(write)
        uid = old["metadata"]["uid"]
        if uid not in self._unsaved and _is_unchanged(old, new):
            return old
        _check_size(new)
        if caller.dry_run:
            return new
        self._unsaved.discard(uid)
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            self._storage.remove(resource.key, key)
            return new
        return self._storage.put(resource.key, key, new)

    @staticmethod
    def _check_identity(target: Target, asked: Object, old: Object) -> None:
        resource = target.resource
        if asked.get("name", target.name) != target.name:
            raise bad_request(
                f"the name of the object ({asked['name']}) does not match the name on the URL "
                f"({target.name})"
            )
        if asked.get("uid", old["uid"]) != old["uid"]:
            words = f'metadata.uid: Invalid value: "{asked["uid"]}": field is immutable'
            raise invalid(f'{resource.qualified_kind} "{target.name}"', [words])
        version = asked.get("resourceVersion")
        if version is not None and version != old["resourceVersion"]:
            raise changed(f'{resource.qualified} "{target.name}"')

    def _track(
        self, resource: Resource, obj: Object, old: Object | None, caller: Caller, part: str
    ) -> None:
        manager = self._field_manager(resource)
        now = whole_seconds(self._clock())
        if old is None:
            entries = manager.created(obj, caller.manager, now)
        else:
            entries = manager.updated(old, obj, caller.manager, part, now)
        if entries is None:
            obj["metadata"].pop("managedFields", None)
        else:
            obj["metadata"]["managedFields"] = entries

    def _field_manager(self, resource: Resource) -> FieldManager:
        key = (*resource.key, id(resource))
        found = self._field_managers.get(key)
        if found is None:
            found = FieldManager(resource.schema, resource.api_version)
            self._field_managers[key] = found
        return found

    def _validate(self, resource: Resource, obj: Object, old: Object | None) -> None:
        found, name = Findings(), obj["metadata"].get("name", "")
        if old is None:
            _check_name(resource, name, found)
        if resource.schema is not None:
            resource.schema.check(obj, old, found)
        if found.errors:
            raise invalid(f'{resource.qualified_kind} "{name}"', found.errors)

    # ---- delete

    def delete(self, target: Target, options: Mapping[str, Any], caller: Caller) -> Object:
        """Delete an object; with finalizers, or a pod with grace, it is only marked."""
        resource, key = target.resource, (target.namespace, target.name)
        old = self._storage.get(resource.key, key)
        if old is None:
            raise not_found(resource.qualified, target.name)
        _check_preconditions(resource, old, options.get("preconditions") or {})
        caller.dry_run |= "All" in (options.get("dryRun") or ())
        grace = _grace(resource, old, options)
        if old["metadata"].get("finalizers") or grace:
            return self._mark(target, old, grace, caller)
        if not caller.dry_run:
            self._storage.remove(resource.key, key)
            if resource.plural == "namespaces":
                self._empty(target.name)
        if resource.plural == "pods":
            return old
        details = {"name": target.name, "kind": resource.plural, "uid": old["metadata"]["uid"]}
        if resource.group:
            details["group"] = resource.group
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }

    def _mark(self, target: Target, old: Object, grace: int, caller: Caller) -> Object:
        if "deletionTimestamp" in old["metadata"] or caller.dry_run:
            return old
        metadata = {
            **old["metadata"],
            "deletionTimestamp": whole_seconds(self._clock() + grace),
            "deletionGracePeriodSeconds": grace,
            "generation": old["metadata"].get("generation", 1) + 1,
        }
        key = target.namespace, target.name
        return self._storage.put(target.resource.key, key, {**old, "metadata": metadata})

    def _empty(self, namespace: str) -> None:
        """Delete all there is in a namespace, as its controller would."""
        for kind, collection in self._storage:
            for key in [key for key in collection.keys if key[0] == namespace]:
                self._storage.remove(kind, key)

    def collect_garbage(self) -> int:
        """Delete objects whose owners are all gone, and return how many.

        A garbage collector does that; when it happens here is for the simulation to say.
        """
        alive = {
            obj["metadata"]["uid"] for _, kind in self._storage for obj in kind.objects.values()
        }
        removed = 0
        for resource, collection in self._storage:
            for key in list(collection.keys):
                owners = collection.objects[key]["metadata"].get("ownerReferences")
                if owners and not any(owner["uid"] in alive for owner in owners):
                    self._storage.remove(resource, key)
                    removed += 1
        return removed + self.collect_garbage() if removed else 0


def _metadata(given: Any) -> Object:
    """Return metadata as it is read: without what is empty or not known."""
    found = given if isinstance(given, dict) else {}
    return {
        name: value
        for name, value in found.items()
        if name in _METADATA and (value or name == "managedFields") and value is not None
    }


def _narrowed(resource: Resource, part: str, asked: Object, old: Object) -> Object:
    """Return what the request may change of the object, and all else as it was."""
    kept = {name: old["metadata"][name] for name in _KEPT_ON_UPDATE if name in old["metadata"]}
    if part == "status":
        told = {"managedFields": asked["metadata"].get("managedFields")}
        metadata = {**old["metadata"], **told}
        new = {**old, "metadata": metadata}
        new.pop("status", None)
        return {**new, "status": asked["status"]} if "status" in asked else new
    metadata = {**asked["metadata"], **kept}
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name not in kept:
            metadata.pop(name, None)
    new = {**asked, "metadata": metadata}
    if resource.has_status and resource.schema is not None:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _is_unchanged(old: Object, new: Object) -> bool:
    """Return whether nothing is written; as JSON, to which 1, 1.0 and true are not the same."""
    before, after = _timeless(old), _timeless(new)
    return before == after and _text(before) == _text(after)


def _timeless(obj: Object) -> Object:
    """Return an object without the times of its managed fields, which alone are no change."""
    metadata = dict(obj["metadata"])
    entries = metadata.pop("managedFields", None)
    told = None if entries is None else [{**entry, "time": ""} for entry in entries]
    return {**obj, "metadata": [metadata, told]}


def _text(obj: Object) -> bytes:
    return encode(obj, sort_keys=True)


def _check_size(obj: Object) -> None:
    if len(encode(obj)) > MAX_STORED_BYTES:
        raise StatusError(500, "", "etcdserver: request is too large")


def _check_name(resource: Resource, name: str, found: Findings) -> None:
    path = "metadata.name"
    if not name:
        words = "Required value: name or generateName is required"
        found.add(path, words, blocking=True)
        return
    if resource.group == RBAC_GROUP:
        return
    if len(name) > _MAX_NAME:
        words = f"must be no more than {_MAX_NAME} characters"
        found.add(path, f'Invalid value: "{name}": {words}')
    if not _NAME.match(name):
        found.add(path, f'Invalid value: "{name}": {_NAME_WORDS}')


def _check_preconditions(resource: Resource, old: Object, wanted: Mapping[str, Any]) -> None:
    metadata, what = old["metadata"], f'{resource.qualified_kind} "{old["metadata"]["name"]}"'
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != metadata["uid"]:
        raise conflict(
            what,
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated",
        )
    if version is not None and version != metadata["resourceVersion"]:
        raise conflict(
            what,
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have "
            "been modified",
        )


def _grace(resource: Resource, old: Object, options: Mapping[str, Any]) -> int:
    """Return how long a deleted pod stays for its kubelet to end it; others go at once."""
    spec = old.get("spec") or {}
    if resource.plural != "pods" or "nodeName" not in spec:
        return 0
    given = options.get("gracePeriodSeconds")
    default = spec.get("terminationGracePeriodSeconds", _GRACE_SECONDS)
    return int(default if given is None else given)
