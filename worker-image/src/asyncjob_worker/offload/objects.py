"""Payloads in Secrets and ConfigMaps: one key of an object in the job's namespace."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.errors import AsyncJobError, ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, opt_text, text

ReadObject = Callable[[str], Awaitable[JsonObject]]
"""Reads an object of the API server by its path."""

PAYLOADS_ROLE: Final = "asyncjob-worker-payloads"


class SourceMissingError(AsyncJobError, LookupError):
    """The object or key that holds the payload is not there."""


class SourceForbiddenError(AsyncJobError, PermissionError):
    """The worker may not read the object that holds the payload."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of object that has keys; `encoded` where its data is base64."""

    name: str
    resource: str
    encoded: bool


SECRET: Final = SourceKind("Secret", "secrets", encoded=True)
CONFIG_MAP: Final = SourceKind("ConfigMap", "configmaps", encoded=False)


@dataclass(frozen=True, slots=True)
class KeyReference:
    """One key of one object."""

    kind: SourceKind
    namespace: str
    name: str
    key: str

    @classmethod
    def parse(cls, kind: SourceKind, namespace: str, reference: JsonObject) -> "KeyReference":
        """Return what a `secretKeyRef` or `configMapKeyRef` refers to."""
        return cls(kind, namespace, text(reference, "name"), text(reference, "key"))

    def __str__(self) -> str:
        """Return it as people say it."""
        return f"key {self.key!r} of {self.kind.name} {self.name!r}"

    @property
    def path(self) -> str:
        """Path of the object in the API."""
        return f"/api/v1/namespaces/{self.namespace}/{self.kind.resource}/{self.name}"

    def value(self, obj: JsonObject) -> bytes:
        """Return the key's content; raises SourceMissingError if there is none."""
        plain = opt_text(child(obj, "data"), self.key)
        encoded = opt_text(child(obj, "binaryData"), self.key)
        if plain is not None and not self.kind.encoded:
            return plain.encode()
        encoded = plain if self.kind.encoded else encoded
        if encoded is None:
            raise SourceMissingError(
                f"{self.kind.name} {self.name!r} in namespace {self.namespace!r} has no key "
                f"{self.key!r}, from which the payload comes"
            )
        try:
            return base64.b64decode(encoded)
        except binascii.Error:
            return b""


async def read_key(key: KeyReference, read: ReadObject) -> bytes:
    """Return a key's content.

    Raises SourceMissingError and SourceForbiddenError, which say what to do, and ApiError.
    """
    try:
        obj = await read(key.path)
    except ObjectNotFoundError as error:
        raise SourceMissingError(
            f"there is no {key.kind.name} {key.name!r} in namespace {key.namespace!r}, from whose "
            f"key {key.key!r} the payload comes"
        ) from error
    except ForbiddenError as error:
        raise SourceForbiddenError(
            f"the worker may not get {key.kind.resource} {key.name!r} in namespace "
            f"{key.namespace!r}: bind the ClusterRole {PAYLOADS_ROLE} to its ServiceAccount "
            "there, or grant "
            f"get on this one by resourceNames"
        ) from error
    return key.value(obj)
