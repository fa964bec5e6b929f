"""Reads a job's payload, wherever it lies."""

from typing import Final

from asyncjob.app import Handler
from asyncjob.app.threads import in_daemon_thread
from asyncjob.depth import DEEPEST
from asyncjob.errors import NoClusterError
from asyncjob.json_types import JsonObject, child, opt_text
from asyncjob.offload import AddressError, IntegrityError, ObjectTooLargeError
from asyncjob.offload.addresses import split_checksum
from asyncjob.offload.exchange import check_digest
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.config import OffloadSettings
from asyncjob_worker.offload.interpreting import PayloadError, Text, interpret
from asyncjob_worker.offload.objects import CONFIG_MAP, SECRET, KeyOf, Kind, ReadObject, read_key
from asyncjob_worker.offload.transfers import Transfers
from asyncjob_worker.offload.tries import Tries

__all__ = ["PayloadError", "Payloads"]

LARGE_BYTES: Final = 64 * 1024
"""Larger payloads are parsed off the event loop."""

_DOING: Final = "the payload could not be read"


async def nowhere(_: str) -> JsonObject:
    """Stand in for the API server where there is none."""
    raise NoClusterError


class Payloads:
    """Reads payloads for one worker process; `read_object` reads from the API server."""

    def __init__(
        self,
        offload: OffloadSettings,
        transfers: Transfers,
        read_object: ReadObject = nowhere,
    ) -> None:
        self._offload = offload
        self._transfers = transfers
        self._read_object = read_object

    async def read(self, held: HeldJob, handler: Handler) -> object:
        """Return the payload as the handler wants it.

        Raises PayloadError and ValidationError where no retry would help, and Interrupted if the
        attempt has to stop meanwhile; any other error is a failed attempt.
        """
        if held.too_deep:
            raise PayloadError(f"the job is nested deeper than {DEEPEST} levels; submit it flatter")
        if "payloadFrom" not in held.spec:
            return handler.read_payload(held.spec.get("payload"))
        found = await self._find(held, child(held.spec, "payloadFrom"))
        if len(found.data) < LARGE_BYTES:
            return interpret(found, handler)
        return await in_daemon_thread(lambda: interpret(found, handler), "decoding")

    async def _find(self, held: HeldJob, source: JsonObject) -> Text:
        if (uri := opt_text(source, "uri")) is not None:
            return await self._object(held, uri)
        for field, kind in (("secretKeyRef", SECRET), ("configMapKeyRef", CONFIG_MAP)):
            if field in source:
                return await self._key(held, kind, child(source, field))
        raise PayloadError(
            f"this worker does not know spec.payloadFrom.{', '.join(source) or '(nothing)'}"
        )

    async def _key(self, held: HeldJob, kind: Kind, reference: JsonObject) -> Text:
        key = KeyOf.read(kind, held.job.namespace, reference)
        data = await Tries(held, _DOING, lambda: read_key(key, self._read_object)).run()
        if len(data) > self._offload.limit:
            raise PayloadError(f"{key} has {len(data)} bytes, the limit is {self._offload.limit}")
        return Text(data, str(key), is_secret=kind is SECRET)

    async def _object(self, held: HeldJob, uri: str) -> Text:
        try:
            address, sha256 = split_checksum(uri)
            allowed = self._offload.allowed(held.job.namespace)
            data = await Tries(held, _DOING, lambda: self._transfers.read(address, allowed)).run()
            if sha256:
                await in_daemon_thread(lambda: check_digest(address, data, sha256), "digest")
        except AddressError as error:
            raise PayloadError(f"spec.payloadFrom.uri: {error} (see --payload-prefix)") from error
        except (IntegrityError, ObjectTooLargeError) as error:
            raise PayloadError(f"spec.payloadFrom.uri: {error}") from error
        return Text(data, str(address))
