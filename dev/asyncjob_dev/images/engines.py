"""The programs that build images, each behind the same few verbs."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.errors import EngineFailedError, NoEngineError

NAMES = ("docker", "podman", "buildah")
TAIL_LINES = 30
PULL_SECONDS = 300.0
QUERY_SECONDS = 20.0
ISOLATION = ("--isolation", "chroot")
"""buildah's own containers need rights that a container, or a user without root, may not have."""


@dataclass(frozen=True)
class Engine:
    """One of `NAMES`; `options` come before the verb, such as where images are kept."""

    name: str
    options: tuple[str, ...] = ()

    def build(self, arguments: Sequence[str], folder: Path) -> str:
        """Build in a folder; returns what was said."""
        extra = ("--layers", *ISOLATION) if self.name == "buildah" else ()
        return self.run("build", *extra, *arguments, str(folder))

    def has(self, image: str) -> bool:
        """Return whether the image is here."""
        verb = ("inspect", "--type=image") if self.name == "buildah" else ("image", "inspect")
        return self._do([*verb, image], QUERY_SECONDS).returncode == 0

    def pull(self, image: str) -> str:
        """Fetch the image; returns why it could not be, or nothing."""
        try:
            done = self._do(["pull", "--quiet", image], PULL_SECONDS)
        except subprocess.TimeoutExpired:
            return f"no answer within {PULL_SECONDS:g} s"
        return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]

    def load(self, archive: Path, image: str) -> None:
        """Make an image of a root file system packed with tar."""
        if self.name != "buildah":
            self.run("import", str(archive), image)
            return
        recipe = archive.with_suffix(".Dockerfile")
        recipe.write_text(f"FROM scratch\nADD {archive.name} /\n")
        self.build(["--file", str(recipe), "--tag", image], archive.parent)

    def save(self, image: str, archive: Path) -> None:
        """Write an image to an archive, as `docker save` does; a file in the way is replaced."""
        archive.unlink(missing_ok=True)
        if self.name == "buildah":
            self.run("push", "--quiet", image, f"docker-archive:{archive}:{image}")
        else:
            self.run("save", "--output", str(archive), image)

    def push(self, image: str, reference: str) -> None:
        """Send an image to a registry, under the name it is to have there."""
        self.run("tag", image, reference)
        self.run("push", "--quiet", reference)

    def run(self, *arguments: str) -> str:
        """Do something; returns what was said on stdout, or raises with the end of it all."""
        done = self._do(arguments)
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
            raise EngineFailedError([self.name, *arguments], done.returncode, tail)
        return done.stdout

    def _do(
        self, arguments: Sequence[str], timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.name, *self.options, *arguments],
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )


def find_engine(environ: Mapping[str, str]) -> Engine:
    """Return the first that works here; raises NoEngineError saying what each lacks."""
    tried = []
    for name in NAMES:
        lack = _why_unusable(name, environ)
        if not lack:
            return Engine(name)
        tried.append(f"{name}: {lack}")
    raise NoEngineError(tried)


def buildah_in(folder: Path) -> Engine:
    """Return buildah with images of its own below a folder."""
    if shutil.which("buildah") is None:
        raise NoEngineError(["buildah: not on PATH"])
    kept, running = folder / "storage", folder / "running"
    return Engine("buildah", ("--root", str(kept), "--runroot", str(running)))


def _why_unusable(name: str, environ: Mapping[str, str]) -> str:
    """Return why an engine cannot be used; a docker without its daemon is the usual case."""
    program = shutil.which(name, path=environ.get("PATH"))
    if program is None:
        return "not on PATH"
    try:
        done = subprocess.run(
            [program, "info"], capture_output=True, text=True, timeout=QUERY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`{name} info` does not answer"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines or [f"`{name} info` fails"])[-1]
