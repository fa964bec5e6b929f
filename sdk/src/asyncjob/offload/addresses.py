"""Addresses in object stores.

Which are accepted, which may be read, and where payloads and results lie. Pure: no store is asked.

An address comes from the author of the job and is opened with our rights. So there is only one way
to write each: what a driver, a file system or a web server might take for another place (`..`, an
encoded slash, a chain of protocols, a query) is refused.

Results and payloads have a folder each above the namespaces, so that one lifecycle rule of the
store covers all results, and one rule of its access policy a namespace. A result's name holds the
claim that made it: a retry does not meet an earlier attempt's result, nor a fenced attempt that of
its successor.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from asyncjob.offload.errors import AddressError

MAX_ADDRESS_LENGTH: Final = 2048
"""Longest address that a job's spec and status take."""

LOCAL_PROTOCOLS: Final = frozenset({"file", "local"})
_HOSTLESS_PROTOCOLS: Final = LOCAL_PROTOCOLS | {"memory"}
"""Protocols without a bucket or host."""

_ADDRESS_PATTERN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_MAX_DECODINGS: Final = 8
_FORBIDDEN_TEXTS: Final = {
    "::": "a chain of protocols",
    "\\": "a backslash",
    "?": "a query",
    "#": "a fragment other than #sha256=…",
}
_CHECKSUM_PATTERN: Final = re.compile(r"#sha256=([0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class Address:
    """One object or folder: protocol, then bucket or host (empty for files), then its path."""

    protocol: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address; raises AddressError that says what about it is not accepted."""
        found = _ADDRESS_PATTERN.fullmatch(text)
        if len(text) > MAX_ADDRESS_LENGTH:
            raise AddressError(
                f"an address has at most {MAX_ADDRESS_LENGTH} characters, not {len(text)}"
            )
        if not text.isprintable():
            raise AddressError("an address has no control characters")
        for word, what in _FORBIDDEN_TEXTS.items():
            if word in text:
                raise AddressError(
                    f"{_redacted(text)}: an address has no {what.removeprefix('a ')}"
                )
        if not found:
            raise AddressError(
                f"{_redacted(text)}: an address begins with a protocol, such as s3://"
            )
        address = cls(found[1], tuple(found[2].split("/")) if found[2] else ())
        _check_address(address)
        return address

    @classmethod
    def folder(cls, text: str) -> "Address":
        """Return the address of a folder; a slash at its end means nothing."""
        bare = text.rstrip("/") if not text.endswith("://") else text
        return cls.parse(bare)

    def __str__(self) -> str:
        """Return the one way to write it."""
        return f"{self.protocol}://{'/'.join(self.parts)}"

    @property
    def is_local(self) -> bool:
        """Whether it lies on a file system of this machine."""
        return self.protocol in LOCAL_PROTOCOLS

    @property
    def path(self) -> str:
        """The path of a local file."""
        return "/".join(self.parts)

    def join(self, *names: str) -> "Address":
        """Return the address of what lies below; each name is one step."""
        below = Address(self.protocol, (*self.parts, *names))
        _check_address(below)
        return below

    def is_below(self, folder: "Address") -> bool:
        """Return whether it lies in the folder, at any depth."""
        depth = len(folder.parts)
        return (
            self.protocol == folder.protocol
            and len(self.parts) > depth
            and self.parts[:depth] == folder.parts
        )


@dataclass(frozen=True, slots=True)
class AllowList:
    """The folders below which objects may be read."""

    folders: tuple[Address, ...]

    def roots(self, address: Address) -> tuple[Address, ...]:
        """Return the allowed folders that it lies in; raises AddressError if there is none."""
        found = tuple(folder for folder in self.folders if address.is_below(folder))
        if not found:
            allowed = ", ".join(f"{folder}/" for folder in self.folders) or "nothing"
            raise AddressError(f"{address} is not below what may be read: {allowed}")
        return found


def with_checksum(address: Address, sha256: str) -> str:
    """Return the address as text that also says what has to be found there."""
    return f"{address}#sha256={sha256}"


def split_checksum(uri: str) -> tuple[Address, str | None]:
    """Return the address and, if the text carries one, the digest in hexadecimal."""
    found = _CHECKSUM_PATTERN.search(uri)
    if not found:
        return Address.parse(uri), None
    return Address.parse(uri[: found.start()]), found[1]


def _check_address(address: Address) -> None:
    host, *path = address.parts or ("",)
    if address.is_local and (host or not path):
        raise AddressError(f"{address}: the path of a file is absolute: {address.protocol}:///…")
    if not host and address.protocol not in _HOSTLESS_PROTOCOLS:
        raise AddressError(f"{address}: after {address.protocol}:// comes a bucket or host")
    if "@" in host:
        raise AddressError("an address carries no credentials: give them to the worker instead")
    for part in (*path, *([host] if host else [])):
        _check_part(address, part)


def _check_part(address: Address, part: str) -> None:
    plain = _fully_decoded(part)
    if plain in {"", ".", ".."} or "/" in plain or "\\" in plain or not plain.isprintable():
        raise AddressError(f"{address}: {part!r} is not the name of a folder or object")


def _fully_decoded(part: str) -> str:
    """Return the name without percent-encoding, however often it was encoded."""
    for _ in range(_MAX_DECODINGS):
        plain = unquote(part)
        if plain == part:
            return plain
        part = plain
    return ""


def _redacted(text: str) -> str:
    """Return what of a refused address can be repeated: nothing that might be a credential."""
    kept = re.split(r"[?#]", text)[0]
    return repr(re.sub(r"//[^/]*@", "//…@", kept))


RESULTS_FOLDER: Final = "results"
PAYLOADS_FOLDER: Final = "payloads"


def result_address(
    store: Address, *, namespace: str, uid: str, attempt: int, claim: str
) -> Address:
    """Return where the result of one attempt lies."""
    return store.join(RESULTS_FOLDER, namespace, uid, f"{attempt}-{claim}.json")


def step_address(
    store: Address, *, namespace: str, uid: str, attempt: int, claim: str, key: str
) -> Address:
    """Return where the result of one step lies: beside that of the attempt that has taken it."""
    name = f"{attempt}-{claim}-{sha256_name(key)}.json"
    return store.join(RESULTS_FOLDER, namespace, uid, name)


def sha256_name(key: str) -> str:
    """Return a name for any text: 16 hexadecimal digits of its digest."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def payload_address(store: Address, *, namespace: str, sha256: str) -> Address:
    """Return where a payload lies: the same content at the same place, however often it is sent."""
    return store.join(PAYLOADS_FOLDER, namespace, f"{sha256}.json")


def default_prefixes(store: Address, namespace: str) -> tuple[Address, ...]:
    """Return what jobs of a namespace may read unless configured otherwise: what is their own."""
    return store.join(PAYLOADS_FOLDER, namespace), store.join(RESULTS_FOLDER, namespace)
