"""Builds pinned tools with the Go compiler of this machine.

go.sum is what makes this safe: `-mod=readonly` lets the compiler use nothing that is not listed
there with its checksum.

The sources of all are fetched at once; meanwhile that part of the standard library is compiled
which all of them need. Then the programs are compiled one after another, as what they share would
else be compiled twice; only while one is linked, which takes one processor, the next begins. Go
keeps what it has fetched and each package that it has compiled, in folders of our cache: a build
that was broken off goes on from there.
"""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.gocommand import GoCommand
from asyncjob_dev.binaries.gofailure import failure
from asyncjob_dev.binaries.packages import (
    LIST_FORMAT,
    STANDARD,
    BuildCounts,
    Package,
    read_packages,
)
from asyncjob_dev.binaries.pins import OWN_VERSION, Pin
from asyncjob_dev.errors import BinaryError, GoMissingError, GoTooOldError
from asyncjob_dev.progress import ProgressLine, note

KUBERNETES_PREFIX = "k8s.io/kubernetes/"
VERSION_VARIABLES = {
    "github.com/containerd/containerd/v2/": "github.com/containerd/containerd/v2/version.Version",
    "helm.sh/helm/v4/": "helm.sh/helm/v4/internal/version.version",
}
"""The variable that holds the version, by the start of a package's path."""
# The first Go that switches to another toolchain by itself.
SWITCHES_SINCE = (1, 21)
# The linker leaves debugging information out, so the compiler need not make it.
COMPILE_FLAGS = ("-mod=readonly", "-modcacherw", "-trimpath", "-gcflags=all=-dwarf=false")
"""Whatever `go list` is to say of the compiler's work it has to be asked with these."""

NEEDED_BY_ALL = ("net/http", "encoding/json", "text/template")
"""Of the standard library; with what these import, most of what any of the programs needs."""

EASY_ON_TIME = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""The compiler collects its garbage less often than is its habit, while it has little of it."""


@dataclass(frozen=True)
class Target:
    """A program to be built to `output`.

    For the error, `tried` says what was looked at before, and `ways` how else it may be had.
    """

    pin: Pin
    output: Path
    tried: Sequence[str]
    ways: Sequence[str] = ()


Finished = Callable[[Target], None]


def build_all(
    targets: Sequence[Target], environ: Mapping[str, str], cache: BinaryCache, finished: Finished
) -> None:
    """Compile them; each is handed to `finished` as soon as it is there. Call under their locks."""
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        first = targets[0]
        raise GoMissingError(first.pin.tool, _short(first.pin.go), first.tried, first.ways)
    for pin in {target.pin.go: target.pin for target in targets}.values():
        check_compiler(pin, go, environ)
    note(announcement([target.pin for target in targets]))
    with cache.scratch(targets[0].pin.tool) as scratch:
        _Run(go, go_environment(environ, cache.go, scratch), targets, finished).run()


def announcement(pins: Sequence[Pin]) -> str:
    """Say what is built."""
    named = ", ".join(f"{pin.tool} {pin.version}" for pin in pins)
    return (
        f"building from source: {named}. The first time takes minutes; broken off, it goes on from "
        "where it was."
    )


def go_environment(environ: Mapping[str, str], folder: Path, scratch: Path) -> dict[str, str]:
    """Return the environment of `go`: whoever has chosen folders for its caches keeps them."""
    chosen = {name: value for name, value in environ.items() if value}
    own = {
        **EASY_ON_TIME,
        "GOCACHE": str(folder / "build"),
        "GOMODCACHE": str(folder / "mod"),
        "GOTMPDIR": str(scratch),
    }
    return {**own, **chosen, "CGO_ENABLED": "0", "GOWORK": "off"}


def list_arguments(pin: Pin) -> list[str]:
    """Return what to pass to `go` to have the packages listed, and their sources fetched."""
    return ["list", *COMPILE_FLAGS, "-deps", "-f", LIST_FORMAT, pin.package]


def build_arguments(pin: Pin, output: Path) -> list[str]:
    """Return what to pass to `go` to have the program built."""
    link = ["-ldflags", " ".join(["-s", "-w", *_version_flags(pin)])]
    return ["build", "-v", *COMPILE_FLAGS, *link, "-o", str(output), pin.package]


def check_compiler(pin: Pin, go: str, environ: Mapping[str, str]) -> None:
    """Raise `GoTooOldError` unless this Go is new enough or may fetch one that is."""
    has = _ask(go, "GOVERSION", {**environ, "GOTOOLCHAIN": "local"}).removeprefix("go")
    toolchain = _ask(go, "GOTOOLCHAIN", environ) or "local"
    may_switch = _numbers(has) >= SWITCHES_SINCE and not toolchain.startswith("local")
    if _numbers(has) < _numbers(pin.go) and not may_switch:
        raise GoTooOldError(pin.tool, _short(pin.go), has, toolchain)


class _Listing(threading.Thread):
    """Hands on what a program consists of as soon as Go has found it out."""

    def __init__(self, command: GoCommand, count: Callable[[list[Package]], None]) -> None:
        super().__init__(name="go list", daemon=True)
        self.command = command
        self._count = count
        self.start()

    def run(self) -> None:
        """Wait for the list."""
        if self.command.wait() == 0:
            self._count(read_packages(self.command.printed))


class _Run:
    """One build of several programs: all that runs meanwhile, and what of it is shown."""

    def __init__(
        self, go: str, env: Mapping[str, str], targets: Sequence[Target], finished: Finished
    ) -> None:
        self._go = go
        self._env = env
        self._targets = targets
        self._finished = finished
        self._counts = BuildCounts([target.pin.tool for target in targets])
        self._progress = ProgressLine(f"building {', '.join(it.pin.tool for it in targets)}")
        self._commands: list[GoCommand] = []
        self._linked: list[tuple[Target, GoCommand]] = []

    def run(self) -> None:
        """Build; nothing of it runs any more when this returns or raises."""
        try:
            with self._progress:
                self._build()
        except BinaryError:
            with suppress(BinaryError):
                self._finish_linked()
            raise
        finally:
            for command in self._commands:
                command.stop()

    def _build(self) -> None:
        standard = self._build_standard()
        for target, listing in [(it, self._list(it)) for it in self._targets]:
            listing.join()
            self._end(target, listing.command)
            if standard:
                # Or both would compile the same. If it failed, so will this, and say why.
                standard.wait()
            self._compile(target)
        self._finish_linked()

    def _build_standard(self) -> GoCommand | None:
        pins = [it.pin for it in self._targets if it.pin.version != OWN_VERSION]
        if not pins:
            return None
        return self._start(pins[0], ["build", "-v", *COMPILE_FLAGS, *NEEDED_BY_ALL], of=STANDARD)

    def _list(self, target: Target) -> "_Listing":
        command = self._start(target.pin, list_arguments(target.pin), of=target.pin.tool)
        return _Listing(command, lambda packages: self._count(target, packages))

    def _count(self, target: Target, packages: list[Package]) -> None:
        self._counts.listed(target.pin.tool, packages)
        self._progress.detail = self._counts.text()

    def _compile(self, target: Target) -> None:
        """Return when only the linker is at work, and what was built before is there."""
        only_linked = threading.Event()
        argv = build_arguments(target.pin, target.output)
        command = self._start(target.pin, argv, of=target.pin.tool, main_begun=only_linked)

        def watch() -> None:
            command.wait()
            only_linked.set()

        threading.Thread(target=watch, name="go build", daemon=True).start()
        only_linked.wait()
        self._finish_linked()
        self._linked.append((target, command))
        if command.failed:
            self._finish_linked()

    def _finish_linked(self) -> None:
        while self._linked:
            target, command = self._linked.pop(0)
            self._end(target, command)
            self._finished(target)

    def _start(
        self, pin: Pin, argv: list[str], *, of: str, main_begun: threading.Event | None = None
    ) -> GoCommand:
        def count_line(line: str) -> bool:
            known = self._counts.count_line(of, line)
            self._progress.detail = self._counts.text()
            # The program's own package comes last.
            if main_begun and line == pin.package:
                main_begun.set()
            return known

        self._progress.detail = self._counts.text()
        command = GoCommand(
            [self._go, *argv], cwd=pin.module_dir, env=self._env, on_line=count_line
        )
        self._commands.append(command)
        return command

    def _end(self, target: Target, command: GoCommand) -> None:
        if returncode := command.wait():
            raise self._failure(target.pin, returncode, command.complaint)

    def _failure(self, pin: Pin, returncode: int, complaint: str) -> BinaryError:
        folders = [f"{name} ({self._env[name]})" for name in ("GOCACHE", "GOMODCACHE", "GOTMPDIR")]
        proxy = _ask(self._go, "GOPROXY", self._env)
        what = f"{pin.tool} {pin.version}"
        return failure(what, returncode, complaint, proxy=proxy, folders=folders)


def _version_flags(pin: Pin) -> list[str]:
    """Return the linker's flags without which a program reports no version, or v0.0.0."""
    if pin.package.startswith(KUBERNETES_PREFIX):
        return _kubernetes_version_flags(pin.version)
    variables = [name for start, name in VERSION_VARIABLES.items() if pin.package.startswith(start)]
    return [f"-X {name}={pin.version}" for name in variables]


def _kubernetes_version_flags(version: str) -> list[str]:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return [f"-X k8s.io/component-base/version.{name}={text}" for name, text in values.items()]


def _ask(go: str, variable: str, environ: Mapping[str, str]) -> str:
    # Outside any module, or the answer would already be that of a switched toolchain.
    done = subprocess.run(
        [go, "env", variable],
        cwd=Path(os.sep),
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _short(go: str) -> str:
    return ".".join(go.split(".")[:2])
