"""What submitters and readers do with a store.

They offload a large payload, fetch a result, and read the results of an array. All of it blocks
until done; call it from a thread.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from asyncjob.free_json import encode, parse
from asyncjob.json_types import Json
from asyncjob.models.job import PayloadSource
from asyncjob.models.job_status import ResultReference
from asyncjob.offload.addresses import Address, AllowList, payload_address, with_checksum
from asyncjob.offload.errors import IntegrityError
from asyncjob.offload.store import Store


def offload(value: object, url: str, *, namespace: str, store: Store) -> PayloadSource:
    """Write a payload to the store at `url` and return what goes into `spec.payloadFrom`.

    Its address carries the content's digest, which the worker checks. Raises FreeJsonError if the
    value is not JSON or larger than the store's limit, else OffloadError.
    """
    root = Address.folder(url)
    data = encode(value, what="the payload", max_bytes=store.limit)
    digest = sha256_hex(data)
    address = payload_address(root, namespace=namespace, sha256=digest)
    store.write(address, data, root)
    return PayloadSource(uri=with_checksum(address, digest))


def fetch(reference: ResultReference, *, allowed: AllowList, store: Store) -> Json:
    """Return the result that `status.resultRef` refers to.

    Raises AddressError if it lies outside of what is allowed, IntegrityError if size or digest are
    not what was written, else OffloadError.
    """
    address = Address.parse(reference.uri)
    data = store.read(address, allowed.roots(address))
    if len(data) != reference.size_bytes:
        raise IntegrityError(
            f"{address} has {len(data)} bytes, not the {reference.size_bytes} that were written"
        )
    check_digest(address, data, reference.sha256)
    return parse(data, what="the result")


@dataclass(frozen=True, slots=True)
class StoredFolder:
    """The folder of an array's results, and the folders in it, as far as they may be read."""

    address: Address
    allowed: AllowList
    store: Store

    def names(self, folder: str) -> Sequence[str]:
        """Return what is in a folder, `""` for this one itself; nothing if there is none."""
        address = self.address.join(folder) if folder else self.address
        return self.store.names(address, self.allowed.roots(address))

    def read(self, folder: str, name: str) -> bytes:
        """Return the content of an object; raises OffloadError."""
        address = self.address.join(folder, name)
        return self.store.read(address, self.allowed.roots(address))


def result_reference(address: Address, data: bytes) -> ResultReference:
    """Return what `status.resultRef` says of a result."""
    return ResultReference(uri=str(address), size_bytes=len(data), sha256=sha256_hex(data))


def check_digest(address: Address, data: bytes, sha256: str) -> None:
    """Raise IntegrityError if the content is not the one with this digest."""
    if not hmac.compare_digest(sha256_hex(data), sha256):
        raise IntegrityError(f"{address} is not what was written: sha256 mismatch")


def sha256_hex(data: bytes) -> str:
    """Return the digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
