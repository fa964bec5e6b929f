"""What a distribution imports, it names in its pyproject.toml: no luck with others' needs."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OURS = {
    "asyncjob": ["asyncjob-sdk"],
    "asyncjob_worker": ["asyncjob-worker"],
    "asyncjob_gateway": ["asyncjob-operator"],
    "asyncjob_operator": ["asyncjob-operator"],
}
"""An editable installation does not tell."""


def imported(folder: Path) -> Iterator[str]:
    """Yield the top-level modules that the sources of a folder import, but for Python's own."""
    for path in folder.rglob("*.py"):
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


@pytest.mark.parametrize("part", ["sdk", "worker-image", "operator"])
def test_everything_that_is_imported_is_declared(part: str) -> None:
    providers = {**packages_distributions(), **OURS}
    modules = set(imported(ROOT / part / "src")) - sys.stdlib_module_names
    assert modules
    needed = {module: set(map(plain, providers[module])) for module in modules}
    names = declared(ROOT / part / "pyproject.toml")
    assert not {module: by for module, by in needed.items() if not by & names}
