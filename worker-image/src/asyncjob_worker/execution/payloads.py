"""Reads a job's payload and validates it for the handler.

The payload is in the job itself, in a key of a Secret or ConfigMap, or in an object store. Errors
about a secret payload do not repeat its content: messages of schema errors hold field names and
sometimes values from the input (tags of a union, messages of validators), and field names may come
from the input too.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from asyncjob.app import Handler, Isolation
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.deep_json import MAX_PARSED_LEVELS
from asyncjob.errors import AsyncJobError, ForbiddenError, ObjectNotFoundError
from asyncjob.free_json import FreeJsonError, parse
from asyncjob.json_types import Json, JsonObject, child, opt_text, text
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.offload import AddressError, IntegrityError, ObjectTooLargeError
from asyncjob.offload.addresses import split_checksum
from asyncjob.offload.transfer import check_digest
from asyncjob_worker.execution.io_retry import RetriedCall
from asyncjob_worker.execution.object_store import ObjectStoreClient
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import OffloadSettings

PAYLOADS_ROLE: Final = "asyncjob-worker-payloads"
"""Name of the ClusterRole that lets workers read Secrets and ConfigMaps."""

LARGE_BYTES: Final = 64 * 1024
"""Payloads of this size or larger are parsed in a thread."""

_READ_FAILURE: Final = "the payload could not be read"

ReadObject = Callable[[str], Awaitable[JsonObject]]
"""Reads an object from the API server by its path."""


class PayloadError(AsyncJobError):
    """The payload cannot be read, and no retry would help."""

    code = "InvalidPayload"


class SecretPayloadError(AsyncJobError):
    """The handler's own check of a secret payload failed."""

    code = "InvalidPayload"


class SourceMissingError(AsyncJobError, LookupError):
    """The object or key that holds the payload is not there."""

    code = "InvalidPayload"


class SourceForbiddenError(AsyncJobError, PermissionError):
    """The worker may not read the object that holds the payload."""

    code = "InvalidPayload"


@dataclass(frozen=True, slots=True)
class PayloadText:
    """A payload as it was read; `origin` says from where, for people."""

    data: bytes
    origin: str
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of object that has keys; `encoded` if its data is base64."""

    name: str
    resource: str
    encoded: bool


SECRET: Final = SourceKind("Secret", "secrets", encoded=True)
CONFIG_MAP: Final = SourceKind("ConfigMap", "configmaps", encoded=False)


class PayloadReader:
    """Reads payloads for one worker process; `read_object` reads from the API server."""

    def __init__(
        self, offload: OffloadSettings, object_store: ObjectStoreClient, read_object: ReadObject
    ) -> None:
        self._offload = offload
        self._object_store = object_store
        self._read_object = read_object

    async def read(self, held: HeldJob, handler: Handler) -> object:
        """Return the payload as the handler's parameter type.

        Raises PayloadError and ValidationError where no retry would help, and AttemptStopped if the
        attempt has to stop meanwhile. Any other error fails the attempt.
        """
        # What is read without being used may have been cut; a checkpoint or step may have been too.
        kept = held.status.get("checkpoint") is not None or steps_of(held.status)
        if held.too_deep and (handler.takes_payload or kept):
            raise PayloadError(
                f"the job is nested deeper than {MAX_PARSED_LEVELS} levels; submit it flatter"
            )
        if "payloadFrom" not in held.spec:
            return handler.read_payload(held.spec.get("payload"))
        found = await self._read_source(held, child(held.spec, "payloadFrom"))
        if len(found.data) < LARGE_BYTES:
            return parse_payload(found, handler)
        return await run_in_daemon_thread(lambda: parse_payload(found, handler), "decoding")

    async def _read_source(self, held: HeldJob, source: JsonObject) -> PayloadText:
        if (uri := opt_text(source, "uri")) is not None:
            return await self._read_uri(held, uri)
        for field, kind in (("secretKeyRef", SECRET), ("configMapKeyRef", CONFIG_MAP)):
            if field in source:
                return await self._read_key(held, kind, child(source, field))
        raise PayloadError(
            f"this worker does not know spec.payloadFrom.{', '.join(source) or '(nothing)'}"
        )

    async def _read_key(
        self, held: HeldJob, kind: SourceKind, reference: JsonObject
    ) -> PayloadText:
        key = KeyReference.parse(kind, held.job.namespace, reference)
        data = await RetriedCall(
            held, _READ_FAILURE, lambda: read_key(key, self._read_object)
        ).run()
        if len(data) > self._offload.limit:
            raise PayloadError(f"{key} has {len(data)} bytes, the limit is {self._offload.limit}")
        return PayloadText(data, str(key), is_secret=kind is SECRET)

    async def _read_uri(self, held: HeldJob, uri: str) -> PayloadText:
        try:
            address, sha256 = split_checksum(uri)
            allowed = self._offload.allowed(held.job.namespace)
            data = await RetriedCall(
                held, _READ_FAILURE, lambda: self._object_store.read(address, allowed)
            ).run()
            if sha256:
                await run_in_daemon_thread(lambda: check_digest(address, data, sha256), "digest")
        except AddressError as error:
            raise PayloadError(f"spec.payloadFrom.uri: {error} (see --payload-prefix)") from error
        except (IntegrityError, ObjectTooLargeError) as error:
            raise PayloadError(f"spec.payloadFrom.uri: {error}") from error
        return PayloadText(data, str(address))


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
        """Return the reference as text for messages."""
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
            "there, or grant get on this one by resourceNames"
        ) from error
    return key.value(obj)


def parse_payload(found: PayloadText, handler: Handler) -> object:
    """Return the payload as the handler's parameter type.

    Raises PayloadError if it is not JSON, or if it is secret and does not fit the schema,
    SecretPayloadError if a validator fails on a secret one, and else what the schema raises.
    """
    value = _parse_json(found)
    if not found.is_secret:
        return handler.read_payload(value)
    try:
        # Here even for a handler with a process of its own, whose errors would not be redacted.
        checked = handler.inside_process().read_payload(value)
    except ValidationError as error:
        raise PayloadError(
            f"{found.origin} does not fit: {_redacted_message(error, handler)}"
        ) from None
    except Exception as error:  # noqa: BLE001  # a validator of the handler's own may raise anything
        kind = type(error).__name__
        raise SecretPayloadError(f"{found.origin} fails the handler's own check: {kind}") from None
    return value if handler.isolation is Isolation.PROCESS else checked


def _parse_json(found: PayloadText) -> Json:
    try:
        return parse(found.data, what=found.origin)
    except FreeJsonError as error:
        if found.is_secret and "is not JSON" not in str(error):
            # The message may hold field names, which are content too.
            raise PayloadError(
                f"{found.origin} is not JSON as it can be kept: nested too deep, or a number out "
                f"of range"
            ) from None
        raise PayloadError(f"{error}; plain text is JSON when it stands in quotes") from None


def _redacted_message(error: ValidationError, handler: Handler) -> str:
    known = _field_names(handler)
    parts = (
        f"{'.'.join(_redacted_step(step, known) for step in item['loc']) or 'payload'}: "
        f"{item['type']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)


def _redacted_step(step: int | str, known: set[str]) -> str:
    return str(step) if isinstance(step, int) or step in known else "…"


def _field_names(handler: Handler) -> set[str]:
    """Return all field names of the handler's schema, at any depth; they are not secret."""
    try:
        return set(_property_names(handler.payload_adapter.json_schema()))
    except Exception:  # noqa: BLE001  # not every type has a JSON schema; then all names are redacted
        return set()


def _property_names(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _property_names(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("properties")
    names = list(own) if isinstance(own, dict) else []
    return names + [name for item in schema.values() for name in _property_names(item)]
