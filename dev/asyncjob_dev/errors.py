"""Everything that can go wrong in the development tools.

One error tree, each error with what to install or set. A command line catches `DevError` and prints
a sentence instead of a traceback.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

KEPT = "What was fetched and compiled so far is kept: the same command goes on from there."


class DevError(Exception):
    """The development environment cannot do what was asked; the message says what would help."""

    code = "dev-server"
    """What `asyncjob explain` knows the error by."""


class UnsupportedPlatformError(DevError):
    """This operating system cannot run the control plane."""

    code = "dev-system"

    def __init__(self, system: str) -> None:
        super().__init__(
            f"{system} is not supported: the control plane runs on Linux and macOS. "
            "On Windows use WSL 2."
        )


class BinaryError(DevError):
    """A program could not be found, downloaded or built."""

    code = "dev-programs"


class AssetsFolderMissingError(BinaryError):
    """KUBEBUILDER_ASSETS names a folder that is not there."""

    def __init__(self, folder: Path, why: str = "is no folder") -> None:
        super().__init__(
            f"KUBEBUILDER_ASSETS names {folder}, which {why}. Correct it, or unset it to "
            "have the programs downloaded or built."
        )


class CacheUnusableError(BinaryError):
    """The folder where finished programs are kept cannot be read or written."""

    def __init__(self, root: Path, error: OSError) -> None:
        super().__init__(
            f"cannot use the cache {root}: {error.strerror or error}; set ASYNCJOB_CACHE to a "
            "folder you may write."
        )


class PinUnreadableError(BinaryError):
    """The pinned Go module of a tool is missing or has no tool directive."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. Run from a checkout of the repository.")


class ChecksumMismatchError(BinaryError):
    """What was downloaded is not what was pinned."""

    def __init__(self, url: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{url} has the wrong SHA-512 checksum and was not used.\n"
            f"  expected {expected}\n"
            f"  got      {actual}\n"
            "A proxy may have replaced it. Set KUBEBUILDER_ASSETS to a folder with programs you "
            "trust."
        )


class DownloadError(BinaryError):
    """The archive cannot be fetched from here; a build is the next resort."""


class GoMissingError(BinaryError):
    """There is no Go compiler, and nothing else supplied the program."""

    def __init__(self, tool: str, needs: str, tried: Iterable[str], ways: Iterable[str]) -> None:
        others = "".join(f"{way}, or " for way in ways)
        super().__init__(
            f"{tool} was not found ({'; '.join(tried)}) and cannot be built: there is no `go` on "
            f"PATH. Set KUBEBUILDER_ASSETS to a folder that holds {tool}, or {others}install Go "
            f"{needs}, or 1.21 and newer where Go may fetch its own toolchain."
        )


class GoTooOldError(BinaryError):
    """The Go compiler here cannot build the pinned version and may not fetch a newer one."""

    def __init__(self, tool: str, needs: str, has: str, toolchain: str) -> None:
        super().__init__(
            f"building {tool} needs Go {needs}, this is Go {has} with GOTOOLCHAIN={toolchain}. "
            "Install a newer Go, or set GOTOOLCHAIN=auto (Go 1.21 or newer then fetches the "
            "right one), or set KUBEBUILDER_ASSETS."
        )


class BuildError(BinaryError):
    """The compiler refused."""

    def __init__(self, tool: str, returncode: int, output: str) -> None:
        super().__init__(
            f"building {tool} failed (go ended with {returncode}):\n{output}\n"
            "If nothing else helps, set KUBEBUILDER_ASSETS to a folder with the finished programs."
        )


class SourcesUnreachableError(BinaryError):
    """The network does not give what a build needs."""

    def __init__(self, tool: str, proxy: str, output: str) -> None:
        super().__init__(
            f"the sources of {tool} cannot be fetched:\n{output}\n"
            f"Check the network, or set GOPROXY (now {proxy}) to one that you reach, or "
            f"KUBEBUILDER_ASSETS to a folder with the finished programs. {KEPT}"
        )


class CompilerKilledError(BinaryError):
    """The kernel ended the compiler, mostly for want of memory."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"building {tool}: something killed the compiler, mostly the kernel because memory ran "
            f"out. Stop other programs, or set GOFLAGS=-p=1, which takes less at a time. {KEPT}"
        )


class DiskFullError(BinaryError):
    """There is no room for the program or for the compiler's own cache."""

    def __init__(self, where: Path | str) -> None:
        super().__init__(
            f"no space left on the disk of {where}. A build needs about 4 GB for sources and "
            "compiled packages and 300 MB for the programs. Make room, or set ASYNCJOB_CACHE to a "
            f"folder on a larger disk. {KEPT}"
        )


class ProcessDiedError(DevError):
    """A supervised process ended before it was ready."""

    def __init__(self, name: str, returncode: int, tail: str, cause: str) -> None:
        what = f"{name} ended with {returncode} before it was ready."
        sentences = f"{what} {cause}" if cause else what
        super().__init__(f"{sentences}\nThe end of the log of {name}:\n{tail}")


class ProcessPortTakenError(ProcessDiedError):
    """Another process listens on the port."""

    code = "port-taken"


class PortInUseError(DevError):
    """Another process listens on a port that was asked for."""

    code = "port-taken"

    def __init__(self, port: int, option: str) -> None:
        super().__init__(
            f"port {port} is taken: another process listens on it. Stop that one, choose another "
            f"{option}, or leave {option} out, and a free one is taken."
        )


class HandlersNotLoadedError(DevError):
    """The app cannot be imported, or is none."""

    code = "app-not-loaded"

    def __init__(self, app: str, why: str) -> None:
        super().__init__(f"{app!r} cannot be run: {why}")


class NotReadyError(DevError):
    """A supervised process runs but did not become ready in time."""

    def __init__(self, what: str, within: float, log_of: str | None, tail: str) -> None:
        log = f"\nThe end of the log of {log_of}:\n{tail}" if log_of else ""
        super().__init__(f"{what} was not ready within {within:g} s.{log}")


class NoFreePortError(DevError):
    """No port could be bound on the loopback address."""

    code = "port-taken"


class FolderUnusableError(DevError):
    """A folder that was chosen cannot be created, read or written."""

    code = "dev-folder"

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"cannot use the folder {folder}: {error.strerror or error}; choose one you may write."
        )


class TemporaryFolderError(DevError):
    """There is no place for temporary files."""

    code = "dev-folder"

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"cannot make a temporary folder: {error.strerror or error}; set TMPDIR to a folder "
            "you may write."
        )


class DataDirInUseError(DevError):
    """Two control planes may not share one data directory."""

    code = "dev-running"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is in use by another running control plane; stop that one first.")


class KubectlError(DevError):
    """A kubectl command ended with a non-zero code."""

    def __init__(self, arguments: Iterable[str], returncode: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} ended with {returncode}: {stderr.strip()}")
        self.returncode = returncode
        self.stderr = stderr


class ApiStatusError(DevError):
    """The API server answered with an error."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiUnavailableError(DevError):
    """The API server could not be reached, or broke off."""


class EnvironmentInUseError(DevError):
    """Another process runs the environment of this folder."""

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(f"{folder} is in use by process {pid}; `make down` stops it.")
        self.pid = pid


class ServerRunsError(DevError):
    """A development server runs in this folder."""

    code = "dev-running"

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(
            f"asyncjob dev already runs in {folder}, as process {pid}. Ctrl-C in its terminal, or "
            f"`kill {pid}`, ends it; --folder takes another folder, with jobs of its own."
        )


class StartFailedError(DevError):
    """The background process could not bring the environment up; the message is its own."""


class OtherSettingsError(DevError):
    """The environment runs, but not as was asked."""

    def __init__(self, pid: int, differences: Iterable[str]) -> None:
        super().__init__(
            f"already up (process {pid}), and the given settings were not applied: "
            f"{'; '.join(differences)}. `make down` first, then `make up` with them; jobs are kept."
        )


class StopFailedError(DevError):
    """The background process did not end, not even when killed."""


class ManifestsMissingError(DevError):
    """A folder whose manifests the environment applies has none."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no manifests in {folder}: run from a complete checkout.")


class NodeError(DevError):
    """The node cannot do what was asked."""


class CannotRunNodeError(NodeError):
    """This machine lacks something that a node needs."""

    def __init__(self, lacks: Iterable[str]) -> None:
        super().__init__(f"no node can run here: {'; '.join(lacks)}")


class NodeNameError(NodeError):
    """The name does not fit into those of a cgroup and a network device."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is no name for a node: take 1 to 20 lower-case letters, digits and hyphens"
        )


class NodeInUseError(NodeError):
    """A node of this name runs."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a node called {name} is up; take it down first "
            f"(`python -m asyncjob_dev node down --name={name}`), or choose another name"
        )


class NodeNotUpError(NodeError):
    """There is no such node."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no node called {name} is up; `python -m asyncjob_dev node up` starts it")


class NoFreeBlockError(NodeError):
    """Every network that a node could have is in use on this machine."""

    def __init__(self, first: str, last: str) -> None:
        super().__init__(f"no network between {first} and {last} is free on this machine")


class NodeCommandError(NodeError):
    """A program that sets up or serves the node ended with an error."""

    def __init__(self, command: Sequence[str], returncode: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {returncode}: {said.strip()}")


class LeftoverError(NodeError):
    """Something of a node does not go away."""

    def __init__(self, what: str | Path) -> None:
        super().__init__(
            f"{what} is still there after the node's end; the next start of any node tries again"
        )


class ImageError(DevError):
    """An image cannot be built."""


class NoEngineError(ImageError):
    """Nothing here builds images."""

    def __init__(self, tried: Iterable[str]) -> None:
        super().__init__(
            f"nothing here builds images ({'; '.join(tried)}). Install docker, podman or buildah "
            "(Debian: apt-get install buildah)."
        )


class NoBaseError(ImageError):
    """The base image is not to be had, and none can be made here."""

    def __init__(self, base: str, reason: str, missing: str) -> None:
        super().__init__(
            f"the base image {base} cannot be fetched ({reason}), and {missing} to make one here. "
            "Set BASE to an image with Python 3.11 or newer, or, on Debian as root: "
            "apt-get install debootstrap"
        )


class EngineFailedError(ImageError):
    """A program that works on images ended with an error."""

    def __init__(self, command: Sequence[str], returncode: int, tail: str) -> None:
        super().__init__(f"{' '.join(command[:2])} … ended with {returncode}:\n{tail}")


class SiteError(DevError):
    """The documentation cannot be rendered as it is."""

    def __init__(self, what: str, where: Iterable[str]) -> None:
        super().__init__("\n  ".join([f"{what}:", *where]))


class RendererMissingError(DevError):
    """What renders the documentation is not installed."""

    def __init__(self) -> None:
        super().__init__("the renderer of the documentation is missing: run `make docs`")
