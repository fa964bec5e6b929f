"""The kubectl a developer already has, when it is close enough to the server.

Kubernetes supports a kubectl one minor version older or newer than the server.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

MINOR_VERSION_SKEW = 1
KUBECTL_TIMEOUT = 10.0


def kubectl_on_path(server_minor: int, environ: Mapping[str, str]) -> tuple[Path, str] | None:
    """Return a suitable kubectl and its version, or None."""
    found = shutil.which("kubectl", path=environ.get("PATH"))
    if found is None:
        return None
    version = _client_version(found, environ)
    minor = minor_of(version)
    if minor is None or abs(minor - server_minor) > MINOR_VERSION_SKEW:
        return None
    return Path(found), version


def minor_of(version: str) -> int | None:
    """Return the 32 of `v1.32.4-vendor`; None for what is no version."""
    parts = version.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


def _client_version(kubectl: str, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [kubectl, "version", "--client", "-o", "json"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=KUBECTL_TIMEOUT,
        )
        return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""
