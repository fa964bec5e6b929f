"""The licences of everything that is linked into a program, as files.

Of each package all that stand in its folder or above, up to its module's: parts that a module has
taken from elsewhere carry theirs beside them.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from asyncjob_dev.binaries.pins import Pin
from asyncjob_dev.errors import DevError

IS_LICENCE = re.compile(r"(?i)(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?")
_FORMAT = "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{else}}\t\t{{end}}\t{{.Dir}}"


class NoLicenceError(DevError):
    """A module has no licence that could go with it."""


def licences(pin: Pin, go: str, env: Mapping[str, str]) -> dict[str, bytes]:
    """Return the texts by place: `module@version/file`, and `go/LICENSE` of the standard library.

    Raises NoLicenceError for a module that has none.
    """
    listed = _ask(pin, [go, "list", "-mod=readonly", "-deps", "-f", _FORMAT, pin.package], env)
    found: dict[str, bytes] = {}
    named: set[str] = set()
    modules: set[str] = set()
    for line in listed.splitlines():
        module, version, root, folder = line.split("\t")
        if not version:  # the standard library, or what this repository adds
            continue
        name = f"{module}@{version}"
        modules.add(name)
        for path in _beside_and_above(Path(folder), Path(root)):
            found[f"{name}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
            named.add(name)
    if missing := sorted(modules - named):
        raise NoLicenceError(f"no licence in {', '.join(missing)}")
    go_root = Path(_ask(pin, [go, "env", "GOROOT"], env).strip())
    return {**found, "go/LICENSE": (go_root / "LICENSE").read_bytes()}


def _beside_and_above(folder: Path, root: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        if not place.is_relative_to(root):
            return
        yield from (
            one for one in place.iterdir() if one.is_file() and IS_LICENCE.fullmatch(one.name)
        )


def _ask(pin: Pin, command: list[str], env: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=pin.module_dir, env=dict(env), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DevError(f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr}")
    return done.stdout
