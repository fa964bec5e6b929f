"""Where the development tools keep what is worth keeping between runs."""

from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder that the environment asks for; it may not exist yet."""
    if own := environ.get("ASYNCJOB_CACHE"):
        return Path(own).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "asyncjob"
