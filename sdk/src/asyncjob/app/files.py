"""Files of arrays as the runner of a handler sees them: items are read, results are written."""

from typing import Final, NoReturn, Protocol

from asyncjob.offload.errors import StoreRefusedError
from asyncjob.offload.store import ObjectStat


class ResultFolder(Protocol):
    """Where the results of one array go."""

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Write an object whole, in place of one of that name; raises OffloadError."""


class Files(Protocol):
    """Reads the files that jobs of one namespace may read; raises OffloadError."""

    async def stat(self, uri: str) -> ObjectStat:
        """Return size and version of a file."""

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""

    def results(self, uri: str) -> ResultFolder:
        """Return a folder that results go to, if they may."""


class _NoFiles:
    """Where a handler runs without a worker."""

    async def stat(self, uri: str) -> NoReturn:
        raise StoreRefusedError(f"cannot read {uri}: only workers read files of items")

    async def read(self, uri: str, start: int, end: int) -> NoReturn:  # noqa: ARG002  # as others
        raise StoreRefusedError(f"cannot read {uri}: only workers read files of items")

    def results(self, uri: str) -> NoReturn:
        raise StoreRefusedError(f"cannot write to {uri}: only workers store results of items")


NO_FILES: Final[Files] = _NoFiles()
