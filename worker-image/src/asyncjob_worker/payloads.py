"""Reads a job's payload, wherever it lies."""

from typing import Final

from asyncjob.app import Handler
from asyncjob.app.threads import run_in_daemon_thread
from asyncjob.depth import MAX_PARSED_LEVELS
from asyncjob.errors import NoClusterError
from asyncjob.json_types import JsonObject, child, opt_text
from asyncjob.offload import AddressError, IntegrityError, ObjectTooLargeError
from asyncjob.offload.addresses import split_checksum
from asyncjob.offload.exchange import check_digest
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.config import OffloadSettings
from asyncjob_worker.offload.interpreting import PayloadError, PayloadText, parse_payload
from asyncjob_worker.offload.objects import (
    CONFIG_MAP,
    SECRET,
    KeyReference,
    ReadObject,
    SourceKind,
    read_key,
)
from asyncjob_worker.offload.transfers import ObjectStoreClient
from asyncjob_worker.offload.tries import RetriedCall

__all__ = ["PayloadError", "PayloadReader"]

LARGE_BYTES: Final = 64 * 1024
"""Larger payloads are parsed off the event loop."""

_READ_FAILURE: Final = "the payload could not be read"


async def no_cluster(_: str) -> JsonObject:
    """Stand in for the API server where there is none."""
    raise NoClusterError


class PayloadReader:
    """Reads payloads for one worker process; `read_object` reads from the API server."""

    def __init__(
        self,
        offload: OffloadSettings,
        object_store: ObjectStoreClient,
        read_object: ReadObject = no_cluster,
    ) -> None:
        self._offload = offload
        self._object_store = object_store
        self._read_object = read_object

    async def read(self, held: HeldJob, handler: Handler) -> object:
        """Return the payload as the handler wants it.

        Raises PayloadError and ValidationError where no retry would help, and Interrupted if the
        attempt has to stop meanwhile; any other error is a failed attempt.
        """
        if held.too_deep:
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
