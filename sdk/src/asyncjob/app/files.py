"""Files in parts, as the runner of a handler reads them for the items of arrays."""

from typing import Final, NoReturn, Protocol

from asyncjob.offload.errors import StoreRefusedError
from asyncjob.offload.store import ObjectStat


class Files(Protocol):
    """Reads the files that jobs of one namespace may read; raises OffloadError."""

    async def stat(self, uri: str) -> ObjectStat:
        """Return size and version of a file."""

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""


class _NoFiles:
    """Where a handler runs without a worker."""

    async def stat(self, uri: str) -> NoReturn:
        raise StoreRefusedError(f"cannot read {uri}: only workers read files of items")

    async def read(self, uri: str, start: int, end: int) -> NoReturn:  # noqa: ARG002  # as others
        raise StoreRefusedError(f"cannot read {uri}: only workers read files of items")


NO_FILES: Final[Files] = _NoFiles()
