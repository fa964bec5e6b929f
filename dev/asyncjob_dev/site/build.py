"""Render the site into the folder of its version, and check what came out."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

from asyncjob_dev.errors import RendererMissingError, SiteError
from asyncjob_dev.site import versions
from asyncjob_dev.site.check import faults
from asyncjob_dev.site.stage import Staged, settings, stage

_HERE: Final = Path(__file__).parent
_REDIRECT: Final = (
    '<!doctype html><meta charset="utf-8"><title>asyncjob</title>'
    '<meta http-equiv="refresh" content="0; url=latest/"><a href="latest/">asyncjob</a>\n'
)


def build(root: Path, into: Path, version: str) -> Path:
    """Render the documentation of a repository as a version below a folder; return its folder."""
    if not versions.is_name(version):
        raise SiteError("no name for a version", [version])
    staged = stage(root)
    with tempfile.TemporaryDirectory() as scratch:
        rendered = _render(staged, Path(scratch), version)
        _demand_no_faults(rendered)
        target = into / version
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(rendered, target)
    _list_versions(into)
    return target


def _render(staged: Staged, scratch: Path, version: str) -> Path:
    docs = scratch / "docs"
    for place, text in staged.texts.items():
        file = docs / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for place, file in staged.copies.items():
        (docs / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, docs / place)
    shutil.copytree(_HERE / "assets", docs / "assets")
    base = yaml.safe_load((_HERE / "zensical.yaml").read_text(encoding="utf-8"))
    configuration = scratch / "mkdocs.yml"
    configuration.write_text(yaml.safe_dump(settings(staged, base, version), sort_keys=False))
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "-f", configuration.name],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named zensical" in done.stderr:
        raise RendererMissingError
    if done.returncode:
        said = without_traceback(done.stdout + done.stderr)
        raise SiteError("the renderer refuses the pages", [said])
    return scratch / "site"


def without_traceback(said: str) -> str:
    """Return what the renderer says before the traceback that it ends with; that if it is all."""
    before, *_ = re.split(r"^Traceback \(most recent call last\):$", said, flags=re.MULTILINE)
    return before.rstrip() or said.rstrip()


def _demand_no_faults(site: Path) -> None:
    files = frozenset(
        file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()
    )
    pages = {
        name: (site / name).read_text(encoding="utf-8")
        for name in files
        if name.endswith(".html") and name != "404.html"
    }
    if found := sorted(faults(pages, files)):
        raise SiteError("what was rendered has faults", found)


def _list_versions(into: Path) -> None:
    """Write the list that the selector reads, and copy the newest version to `latest`."""
    there = [one.name for one in into.iterdir() if one.is_dir() and one.name != versions.LATEST]
    shutil.rmtree(into / versions.LATEST, ignore_errors=True)
    shutil.copytree(into / versions.latest(there), into / versions.LATEST)
    (into / "versions.json").write_text(json.dumps(versions.listing(there), indent=1) + "\n")
    (into / "index.html").write_text(_REDIRECT)
