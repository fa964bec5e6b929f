"""What a worker is told about the stores it may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asyncjob.offload import Address, AllowList, Store, default_prefixes
from asyncjob.offload.store import MAX_OBJECT_BYTES, REQUEST_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class OffloadSettings:
    """Where large results go and payloads may come from. Sizes in bytes, times in seconds.

    `options` are for the driver of `url`; never shown, because people put credentials there.
    """

    url: Address | None = None
    prefixes: tuple[Address, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    limit: int = MAX_OBJECT_BYTES
    timeout: float = REQUEST_TIMEOUT_SECONDS

    def allowed(self, namespace: str) -> AllowList:
        """Return what payloads of jobs in a namespace may be read from."""
        if self.prefixes or self.url is None:
            return AllowList(self.prefixes)
        return AllowList(default_prefixes(self.url, namespace))

    def store(self) -> Store:
        """Return the means to read and write there."""
        options = {self.url.protocol: self.options} if self.url else {}
        return Store(options, limit=self.limit, timeout=self.timeout)

    def protocols(self) -> set[str]:
        """Return the protocols for which a driver is needed."""
        return {address.protocol for address in (self.url, *self.prefixes) if address}
