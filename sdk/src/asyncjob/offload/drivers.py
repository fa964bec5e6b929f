"""fsspec's drivers: found by protocol, called with a time limit. The only place that names fsspec.

fsspec is imported late, because few who use the SDK offload anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.offload.errors import DriverMissingError

_DEFAULT_OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {
    "http": {"allow_redirects": False},
    "https": {"allow_redirects": False},
}
"""A redirect could lead out of what is allowed."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One fsspec file system; `timeout` in seconds bounds each call that can be interrupted."""

    filesystem: Any
    timeout: float

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call one of its methods."""
        if not self.filesystem.async_impl or not hasattr(self.filesystem, f"_{name}"):
            return getattr(self.filesystem, name)(*args, **kwargs)
        from fsspec.asyn import sync

        method = getattr(self.filesystem, f"_{name}")
        return sync(self.filesystem.loop, method, *args, timeout=self.timeout, **kwargs)


def check_driver(protocol: str) -> None:
    """Raise DriverMissingError that says what to install if a protocol's driver is missing."""
    import fsspec

    try:
        fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise DriverMissingError(
            f"no driver for {protocol}://: {_install_hint(protocol, error)}"
        ) from error


def open_driver(protocol: str, options: Mapping[str, Any], timeout: float) -> Driver:
    """Return a new driver; raises DriverMissingError, and what its constructor raises."""
    check_driver(protocol)
    import fsspec

    # What is listed once is not remembered: an object that was missing may have come.
    own = {"skip_instance_cache": True, "use_listings_cache": False}
    made = {**_DEFAULT_OPTIONS.get(protocol, {}), **options, **own}
    return Driver(fsspec.filesystem(protocol, **made), timeout)


def _install_hint(protocol: str, error: Exception) -> str:
    from fsspec.registry import known_implementations

    if protocol not in known_implementations:
        return "fsspec does not know this protocol"
    package = str(known_implementations[protocol]["class"]).partition(".")[0]
    if package == "fsspec":
        return str(error)
    return f"pip install {package} ({error})"
