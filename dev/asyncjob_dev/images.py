"""Builds the project's images with what the machine has, also where no image registry is reached.

Knows nothing of what is in an image: that is its Dockerfile's matter, which is the same for all.
The base image is the one asked for, else the Dockerfile's own, else one made here with debootstrap
and kept in the cache. pip inside the build gets this machine's pip settings as build secrets, so
nothing of them stays in the image. `python -m asyncjob_dev.images` is the command.
"""

import ast
import configparser
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import DevError, EngineFailedError, NoBaseError, NoEngineError
from asyncjob_dev.progress import ProgressLine, note

ROOT = Path(__file__).parents[2]

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
    with ProgressLine(f"fetching {wanted}"):
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
        ProgressLine(
            f"making a base image of Debian {DEBIAN_RELEASE}, about a minute the first time"
        ),
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


FORWARDED_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
CA_INSIDE = "/etc/ssl/private-ca.pem"


def pip_secrets(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Write pip.conf and ca.pem to a folder; return the options that hand them to a build."""
    options = pip_options(_ask_pip(environ))
    authority = options.pop("cert", "") or environ.get("SSL_CERT_FILE", "")
    found = {}
    if authority and Path(authority).is_file():
        found["ca.pem"] = Path(authority)
        options["cert"] = CA_INSIDE
    found["pip.conf"] = folder / "pip.conf"
    write_config(found["pip.conf"], options)
    return [f"--secret=id={name},src={path}" for name, path in found.items()]


def pip_options(listing: str) -> dict[str, str]:
    """Return the options that matter, by name, from `pip config list`; the last of a name wins."""
    options = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in {*FORWARDED_OPTIONS, "cert"}:
            options[name] = str(ast.literal_eval(value))
    return options


def write_config(path: Path, options: Mapping[str, str]) -> None:
    """Write a pip.conf that only its owner can read: an index's address may hold a password."""
    config = configparser.RawConfigParser()
    config["global"] = dict(options)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        config.write(file)


def _ask_pip(environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@dataclass(frozen=True)
class BuildRequest:
    """Which Dockerfile to build, and what to call it; no `base` means the first to be had."""

    dockerfile: Path
    tag: str
    base: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def build_image(engine: Engine, recipe: BuildRequest, environ: Mapping[str, str]) -> None:
    """Build; raises ImageError that says what is missing or what the engine said."""
    base = recipe.base or find_base(engine, recipe.dockerfile, environ)
    arguments = {"BASE": base, **recipe.arguments}
    given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    with (
        tempfile.TemporaryDirectory(prefix="build-") as folder,
        ProgressLine(f"building {recipe.tag} on {base} with {engine.name}"),
    ):
        files = ["--file", str(recipe.dockerfile), "--tag", recipe.tag]
        engine.build([*files, *given, *pip_secrets(Path(folder), environ)], ROOT)


@click.command()
@click.option("--tag", default="asyncjob-worker", show_default=True, help="Name of the image.")
@click.option(
    "--base", default="", help="Base image.  [default: the Dockerfile's, or one made here]"
)
@click.option(
    "--file",
    "dockerfile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=ROOT / "worker-image" / "Dockerfile",
    help="Dockerfile.  [default: the worker's]",
)
def main(tag: str, base: str, dockerfile: Path) -> None:
    """Build an image with docker, podman or buildah, whichever works here."""
    try:
        engine = find_engine(os.environ)
        build_image(engine, BuildRequest(dockerfile, tag, base), os.environ)
    except DevError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{tag} is built; `{engine.name} images` lists it")


if __name__ == "__main__":
    main()
