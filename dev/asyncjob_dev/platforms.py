"""The platforms that programs are made for, by the names that Go and the archives have for them."""

import platform

from asyncjob_dev.errors import UnsupportedPlatformError

SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def platform_name(system: str = "", machine: str = "") -> str:
    """Return for example `linux-amd64`; this machine's by default."""
    found = system or platform.system()
    if found not in SYSTEMS:
        raise UnsupportedPlatformError(found or "This system")
    processor = (machine or platform.machine()).lower()
    return f"{SYSTEMS[found]}-{MACHINES.get(processor, processor)}"
