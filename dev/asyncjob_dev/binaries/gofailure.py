"""What a failed `go` means, by what it said."""

from collections.abc import Sequence

from asyncjob_dev.errors import (
    BinaryError,
    BuildError,
    CompilerKilledError,
    DiskFullError,
    SourcesUnreachableError,
)

DISK_FULL = ("no space left on device", "disk quota exceeded")
UNREACHABLE = (
    'get "http',
    "reading http",
    "connection reset",
    "could not resolve host",
    "dial tcp",
    "i/o timeout",
    "module lookup disabled by goproxy=off",
    "toolchain not available",
    "unexpected eof",
)
KILLED = "signal: killed"


def failure(
    what: str, returncode: int, complaint: str, *, proxy: str, folders: Sequence[str]
) -> BinaryError:
    """Return the error that names the way out; `folders` are those that `go` writes to."""
    said = complaint.lower()
    if any(sign in said for sign in DISK_FULL):
        return DiskFullError(" or ".join(folders))
    if any(sign in said for sign in UNREACHABLE):
        return SourcesUnreachableError(what, proxy, complaint)
    if KILLED in said:
        return CompilerKilledError(what)
    return BuildError(what, returncode, complaint)
