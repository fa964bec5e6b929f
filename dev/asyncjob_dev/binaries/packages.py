"""What a build has to compile, and how far it is: read from `go list`, counted from `go build -v`.

Go keeps a compiled package by what went into it: its source and what it imports. Programs share a
package where both are the same, and only there. So packages are told apart here by the same.
"""

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass

LIST_FORMAT = "\t".join(
    (
        "{{.ImportPath}}",
        "{{with .Module}}{{.Version}}{{with .Replace}}={{.Path}}@{{.Version}}{{end}}{{end}}",
        "{{.Stale}}",
        "{{.StaleReason}}",
        "{{join .Imports `,`}}",
    )
)
"""For `go list -deps`, which names what is imported before what imports it."""

ONLY_NOT_LINKED = "not installed but available in build cache"
"""Why Go calls a program stale that is compiled."""

STANDARD = ""
"""Stands for the standard library where a program is named."""

FETCHING = "go: downloading "
"""How a line starts that Go writes for each module, or toolchain, that it fetches."""


@dataclass(frozen=True)
class Package:
    """One package of a program; `content` is the same where Go compiles it once."""

    path: str
    content: str
    compiled: bool


def read_packages(listed: str) -> list[Package]:
    """Read what `go list` printed in `LIST_FORMAT`."""
    contents: dict[str, str] = {}
    packages: list[Package] = []
    for line in listed.splitlines():
        path, version, stale, reason, imports = line.split("\t")
        below = [contents.get(name, "") for name in imports.split(",")]
        text = "\0".join([path, version, *below])
        contents[path] = hashlib.sha256(text.encode()).hexdigest()
        compiled = stale != "true" or reason == ONLY_NOT_LINKED
        packages.append(Package(path, contents[path], compiled))
    return packages


class BuildCounts:
    """Counts what is fetched and compiled for several programs; any thread may call it."""

    def __init__(self, tools: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._unlisted = set(tools)
        self._contents: dict[str, dict[str, str]] = {}
        self._all: set[str] = set()
        self._compiled: set[str] = set()
        self._standard: set[str] = set()
        self._fetched = 0

    def listed(self, tool: str, packages: Iterable[Package]) -> None:
        """Take in what a program consists of."""
        found = list(packages)
        with self._lock:
            self._unlisted.discard(tool)
            self._contents[tool] = {one.path: one.content for one in found}
            self._all.update(one.content for one in found)
            self._compiled.update(
                one.content for one in found if one.compiled or one.path in self._standard
            )

    def count_line(self, tool: str, line: str) -> bool:
        """Count a line that Go wrote; returns whether it was about progress."""
        with self._lock:
            if line.startswith(FETCHING):
                self._fetched += 1
                return True
            if tool == STANDARD:
                self._standard.add(line)
                programs = list(self._contents.values())
            else:
                programs = [self._contents.get(tool, {})]
            contents = {it[line] for it in programs if line in it}
            self._compiled |= contents
            return bool(contents) or tool == STANDARD

    def text(self) -> str:
        """Say how far it is; the whole is known once everything is listed."""
        with self._lock:
            compiled = len(self._compiled) or len(self._standard)
            whole, fetched = len(self._all), self._fetched
            complete = not self._unlisted
        if complete:
            return f"{compiled} of {whole} packages"
        parts = [f"modules fetched: {fetched}"] if fetched else ["looking up the sources"]
        return ", ".join([*parts, *([f"packages compiled: {compiled}"] if compiled else [])])
