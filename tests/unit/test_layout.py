"""The size of modules and folders, and one meaning per class name.

A module is what one reads in one sitting; it is split for a reader, not for a number. The bounds
find paragraphs that became modules and modules that became books. What is allowed beyond them says
why.
"""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"sdk": "sdk/src", "worker": "worker-image/src", "operator": "operator/src"}
MIN_LINES_WITH_ONE_IMPORTER = 60
MAX_LINES = 450
MAX_MODULES_PER_FOLDER = 14

SMALL = {
    "asyncjob.tracing.export": "imports the exporter of OpenTelemetry, which is optional",
    "asyncjob_gateway.auth.loopback": "a check of its own, needed by open gateways alone",
    "asyncjob_gateway.dashboard.router": "the list of pages, above all of them",
    "asyncjob_gateway.dashboard.pages.site": "one module per page",
    "asyncjob_gateway.dashboard.pages.workers": "one module per page",
    "asyncjob_gateway.dashboard.pages.cron_jobs": "one module per page",
    "asyncjob_gateway.routes.health": "one module per group of endpoints",
}
"""Modules under 60 lines with one importer, and why they stand alone."""


@cache
def modules(distribution: str) -> dict[str, Path]:
    source = ROOT / SOURCES[distribution]
    return {
        ".".join(file.relative_to(source).with_suffix("").parts): file
        for file in source.rglob("*.py")
    }


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


@cache
def importers() -> dict[str, set[str]]:
    everything = {name for one in SOURCES for name in modules(one)}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for distribution in SOURCES:
        for name, file in modules(distribution).items():
            for imported in imported_by(tree(file), everything):
                found[imported].add(name)
    return found


def imported_by(module: ast.Module, known: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & known) | ({node.module} if inner - known else set())
    return found


def read_by_people(distribution: str) -> dict[str, Path]:
    """Return all modules but those that have to be small."""
    small = {"__init__.py", "__main__.py", "errors.py", "clock.py"}
    return {name: file for name, file in modules(distribution).items() if file.name not in small}


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_short_module_has_more_than_one_reader(distribution: str) -> None:
    short = {
        name
        for name, file in read_by_people(distribution).items()
        if lines(file) < MIN_LINES_WITH_ONE_IMPORTER and len(importers()[name]) == 1
    }
    assert short - set(SMALL) == set()


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_module_is_read_in_one_sitting(distribution: str) -> None:
    long = {name for name, file in modules(distribution).items() if lines(file) > MAX_LINES}
    assert long == set()


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_folder_is_taken_in_at_a_glance(distribution: str) -> None:
    counts = Counter(
        file.parent for file in modules(distribution).values() if not file.name.startswith("__")
    )
    crowded = {str(folder) for folder, count in counts.items() if count > MAX_MODULES_PER_FOLDER}
    assert crowded == set()


def test_what_is_allowed_is_still_needed() -> None:
    everything = {name: file for one in SOURCES for name, file in modules(one).items()}
    needless = [name for name in SMALL if lines(everything[name]) >= MIN_LINES_WITH_ONE_IMPORTER]
    assert needless == []


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_class_name_means_one_thing_in_a_distribution(distribution: str) -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, file in modules(distribution).items():
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
