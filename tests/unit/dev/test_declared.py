"""What a distribution imports, it names in its pyproject.toml: no luck with others' needs."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from asyncjob_dev.bundled import bundled

ROOT = Path(__file__).parents[3]
DEV = ROOT / "dev/asyncjob_dev"
OURS = {
    "asyncjob": ["asyncjob-sdk"],
    "asyncjob_worker": ["asyncjob-worker"],
    "asyncjob_gateway": ["asyncjob-operator"],
    "asyncjob_operator": ["asyncjob-operator"],
    "asyncjob_dev": ["asyncjob-dev"],
}
"""An editable installation does not tell."""


def imported(source: Path) -> Iterator[str]:
    """Yield the top-level modules that a file, or the files of a folder, import."""
    for path in [source] if source.suffix == ".py" else source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield str(node.module).partition(".")[0]


def declared(pyproject: Path) -> set[str]:
    """Return the distributions that a distribution needs, those of its extras included."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    return {plain(re.split(r"[^\w.-]", need)[0]) for need in [project["name"], *needs]}


def plain(name: str) -> str:
    """Return a distribution's name in the one spelling that is compared."""
    return name.lower().replace("_", "-")


def packed() -> set[str]:
    """Return what the wheel of asyncjob-dev has, by name in the package."""
    text = (ROOT / "dev/pyproject.toml").read_text(encoding="utf-8")
    included = tomllib.loads(text)["tool"]["hatch"]["build"]["only-include"]
    return {name.removeprefix("asyncjob_dev/") for name in included}


def sources(part: str) -> list[Path]:
    """Return files and folders that the distribution of a part packs."""
    return [DEV / name for name in packed()] if part == "dev" else [ROOT / part / "src"]


@pytest.mark.parametrize("part", ["sdk", "worker-image", "operator", "dev"])
def test_everything_that_is_imported_is_declared(part: str) -> None:
    providers = {**packages_distributions(), **OURS}
    found = {module for folder in sources(part) for module in imported(folder)}
    modules = found - sys.stdlib_module_names
    assert modules
    needed = {module: set(map(plain, providers[module])) for module in modules}
    names = declared(ROOT / part / "pyproject.toml")
    assert not {module: by for module, by in needed.items() if not by & names}


def test_every_part_of_the_development_tools_is_packed_or_kept_out_of_what_is() -> None:
    """The contract is what keeps a packed module from needing one that no wheel has."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [
        one
        for one in contracts["tool"]["importlinter"]["contracts"]
        if one["name"].startswith("What the wheel of the development server has")
    ]
    modules = {f"asyncjob_dev.{path.stem}" for path in DEV.glob("[!_]*") if is_module(path)}
    inside = {f"asyncjob_dev.{name.removesuffix('.py')}" for name in packed()} & modules
    assert set(contract["source_modules"]) == inside
    assert modules - inside == {
        name for name in contract["forbidden_modules"] if name.startswith("asyncjob_dev.")
    }


def is_module(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").exists()


@pytest.mark.parametrize("name", ["crds", "examples", "manifests", "tools"])
def test_what_is_bundled_is_found_in_a_checkout_and_packed(name: str) -> None:
    assert bundled(name).is_dir()
    assert name in packed()
