"""The base image: the one that is asked for, else the Dockerfile's own, else one made here.

Made of the Debian release of the official image, with debootstrap, and kept in the cache.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from asyncjob_dev.binaries.cache import BinaryCache, cache_dir
from asyncjob_dev.images.engines import TAIL_LINES, Engine
from asyncjob_dev.images.errors import EngineFailedError, NoBaseError
from asyncjob_dev.progress import Progress, note

DEBIAN_RELEASE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
MIRROR = "ASYNCJOB_DEBIAN_MIRROR"
"""Where packages come from. That of a dated snapshot gives the same base tomorrow; else a base has
what Debian has today. It is for development and tests, never for a release."""

EXCLUDED_PATHS = (
    "dev",
    "etc/hostname",
    "etc/resolv.conf",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache",
    "var/lib/apt/lists",
    "var/log",
)
"""What a container brings along, does not read, or has only of the machine that made it."""

_DEFAULT = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)


def default_base(dockerfile: Path) -> str:
    """Return the base that a Dockerfile names."""
    match = _DEFAULT.search(dockerfile.read_text(encoding="utf-8"))
    assert match, f"{dockerfile} has no line ARG BASE="
    return match[1]


def find_base(engine: Engine, dockerfile: Path, environ: Mapping[str, str]) -> str:
    """Return a base image that the engine has; raises NoBaseError."""
    wanted = default_base(dockerfile)
    if engine.has(wanted):
        return wanted
    with Progress(f"fetching {wanted}"):
        reason = engine.pull(wanted)
    if not reason:
        return wanted
    missing = _missing_for_debootstrap()
    if missing:
        raise NoBaseError(wanted, reason, missing)
    note(f"{wanted} cannot be fetched ({reason}): a base is made of Debian's packages instead")
    return _debootstrap_base(engine, BinaryCache(cache_dir(environ)), environ.get(MIRROR, ""))


def _missing_for_debootstrap() -> str:
    if shutil.which("debootstrap") is None:
        return "debootstrap is missing"
    return "" if os.geteuid() == 0 else "it takes root"


def _debootstrap_base(engine: Engine, cache: BinaryCache, mirror: str) -> str:
    recipe = " ".join((DEBIAN_RELEASE, PACKAGES, *EXCLUDED_PATHS, *filter(None, [mirror])))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    image = f"localhost/asyncjob-base:{digest}"
    with cache.lock("base-image"):
        archive = cache.root / "images" / f"base-{digest}.tar"
        if not archive.exists():
            draft = cache.draft(archive)
            _bootstrap(draft, mirror)
            cache.install(draft, archive)
        if not engine.has(image):
            engine.load(archive, image)
    return image


def _bootstrap(archive: Path, mirror: str) -> None:
    with (
        Progress(f"making a base image of Debian {DEBIAN_RELEASE}, about a minute the first time"),
        tempfile.TemporaryDirectory(prefix="base-", dir=archive.parent) as folder,
    ):
        root = Path(folder) / "root"
        command = [
            "debootstrap",
            "--variant=minbase",
            f"--include={PACKAGES}",
            DEBIAN_RELEASE,
            str(root),
        ]
        command += [mirror] if mirror else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
            raise EngineFailedError(command, done.returncode, tail)
        with tarfile.open(archive, "w") as packed:
            packed.add(root, arcname=".", filter=_exclude_paths)


def _exclude_paths(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out the contents, not the folders themselves."""
    path = member.name.removeprefix("./")
    inside = any(path.startswith(f"{name}/") or path == name for name in EXCLUDED_PATHS)
    return None if inside and not (member.isdir() and path in EXCLUDED_PATHS) else member
