"""The size of modules and folders, and one meaning per name of a class or type alias.

A module is what one reads in one sitting; it is split for a reader, not for a number. The bounds
find paragraphs that became modules and modules that became books. What is allowed beyond them says
why.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
SOURCES = {"sdk": "sdk/src", "worker": "worker-image/src", "operator": "operator/src"}
"""What is shipped."""
TOOLS = {"dev": "dev", "simulation": "simulation", "chaos": "chaos", "benchmarks": "benchmarks"}
"""What it is developed and tested with."""
EVERYTHING = {**SOURCES, **TOOLS}
MIN_LINES_WITH_ONE_IMPORTER = 60
MAX_LINES = 400
MAX_MODULES_PER_FOLDER = 14

SMALL = {
    "asyncjob.tracing.export": "imports the exporter of OpenTelemetry, which is optional",
    "asyncjob_gateway.auth.loopback": "a check of its own, needed by open gateways alone",
    "asyncjob_gateway.dashboard.router": "the list of pages, above all of them",
    "asyncjob_gateway.dashboard.pages.site": "one module per page",
    "asyncjob_gateway.dashboard.pages.workers": "one module per page",
    "asyncjob_gateway.dashboard.pages.cron_jobs": "one module per page",
    "asyncjob_gateway.routes.health": "one module per group of endpoints",
    "asyncjob_bench.parts.large_jobs": "one module per part of the benchmark",
    "asyncjob_chaos.faults.crowds": "one module per family of faults",
    "asyncjob_chaos.tools.etcd": "speaks to etcd; knows neither faults nor their target",
    "asyncjob_chaos.tools.tokens": "signs tokens; knows neither faults nor their target",
    "asyncjob_dev.binaries.gofailure": "what Go says, read and tested without a build",
    "asyncjob_dev.node.init": "started by its file's name, with the standard library alone",
    "asyncjob_dev.server.app_check": "a program of its own as well",
    "asyncjob_dev.server.demo": "needs the demo, which the server does without",
    "asyncjob_dev.site.serve": "the server of `make docs-serve`, which rendering does without",
    "asyncjob_perturbation.answer_times": "a measurement beside a case, which it knows nothing of",
    "asyncjob_perturbation.cpu_time": "a measurement beside a case, which it knows nothing of",
    "asyncjob_perturbation.judge": "the audit's verdict, apart from how a case is played",
    "asyncjob_perturbation.planted": "bugs, apart from the processes that they are planted in",
    "asyncjob_simulation.apiserver.access": "the client's idea of a cluster, apart from the server",
    "asyncjob_simulation.child_workload": "what people do in one profile, as for the others",
    "asyncjob_simulation.planted_children": "bugs for one profile, as for the others",
    "asyncjob_simulation.history": "the audit's verdict, apart from the simulation's own rules",
    "asyncjob_worker.claiming.watched_jobs": "which watch knows which job, apart from their order",
}
"""Modules under 60 lines with one importer, and why they stand alone."""

LONG = {
    "asyncjob.app.context": "one class: all that a handler may ask of its job",
    "asyncjob.app.items": "one attempt of a chunk, from its payload to its report",
    "asyncjob.app.steps": "one step from its call to its kept result, awaited and blocking",
    "asyncjob.client.api": "what a client does, once blocking and once not, method by method",
    "asyncjob.client.rest.client": "one method for each thing that a client does",
    "asyncjob_worker.execution.attempt_waits": "the three kinds of wait that park a job together",
    "asyncjob_worker.isolation.protocol": "each message is written and read side by side",
    "asyncjob_dev.reference.limits": "one page: each table is a function that says its rows",
    "asyncjob_operator.operator": "the wiring of one process, from its start to its stop",
    "asyncjob_operator.controllers.array_reconciler": "all writes of arrays and their chunks",
    "asyncjob_operator.controllers.cron_job_reconciler": "all writes of cron jobs and their runs",
    "asyncjob_simulation.life": "one simulated life, from its processes to its verdict",
    "asyncjob_chaos.target": "one class: what a fault may do to the system under load",
    "asyncjob_simulation.apiserver.writes": "one write from its request to storage, in its order",
    "asyncjob_simulation.invariants": "one class: what each rule remembers, the others read",
}
"""Modules that take more than one sitting, and why they are not split."""

CROWDED = {
    "asyncjob.app": "what handlers are written with; a contract has its modules in twelve layers",
    "asyncjob.testing": "the test kit; a contract has its modules in ten layers",
    "asyncjob_bench.parts": "one module per part of the benchmark",
    "asyncjob_dev": "one module or folder per tool, each behind a target of the Makefile",
    "asyncjob_dev.proofs.rules": "one proof; a contract has its modules in nine layers",
    "asyncjob_perturbation": "one program; a contract has its modules in seven layers",
    "asyncjob_simulation": "one program; a contract has its modules in nine layers",
    "asyncjob_simulation.apiserver": "one server; a contract has its modules in eleven layers",
    "asyncjob_worker.claiming": "one way of a job; a contract has its modules in ten layers",
}
"""Folders of more modules than one takes in at a glance, and what leads through them."""


@cache
def modules(distribution: str) -> dict[str, Path]:
    source = ROOT / EVERYTHING[distribution]
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
    """Return who imports each module; that tools import what is shipped does not count."""
    everything = {name for one in EVERYTHING for name in modules(one)}
    shipped = {name for one in SOURCES for name in modules(one)}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for distribution in EVERYTHING:
        for name, file in modules(distribution).items():
            for imported in imported_by(tree(file), everything):
                if name in shipped or imported not in shipped:
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


def short_modules(distribution: str) -> set[str]:
    return {
        name
        for name, file in read_by_people(distribution).items()
        if lines(file) < MIN_LINES_WITH_ONE_IMPORTER and len(importers()[name]) == 1
    }


def long_modules(distribution: str) -> set[str]:
    return {name for name, file in modules(distribution).items() if lines(file) > MAX_LINES}


def crowded_folders(distribution: str) -> set[str]:
    counts = Counter(
        name.rpartition(".")[0]
        for name, file in modules(distribution).items()
        if not file.name.startswith("__")
    )
    return {folder for folder, count in counts.items() if count > MAX_MODULES_PER_FOLDER}


@pytest.mark.parametrize("distribution", EVERYTHING)
def test_a_short_module_has_more_than_one_reader(distribution: str) -> None:
    assert short_modules(distribution) - set(SMALL) == set()


@pytest.mark.parametrize("distribution", EVERYTHING)
def test_a_module_is_read_in_one_sitting(distribution: str) -> None:
    assert long_modules(distribution) - set(LONG) == set()


@pytest.mark.parametrize("distribution", EVERYTHING)
def test_a_folder_is_taken_in_at_a_glance(distribution: str) -> None:
    assert crowded_folders(distribution) - set(CROWDED) == set()


@pytest.mark.parametrize(
    ("allowed", "found"),
    [(SMALL, short_modules), (LONG, long_modules), (CROWDED, crowded_folders)],
    ids=["small", "long", "crowded"],
)
def test_what_is_allowed_is_still_needed(
    allowed: dict[str, str], found: Callable[[str], set[str]]
) -> None:
    assert set(allowed) - set[str]().union(*map(found, EVERYTHING)) == set()


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_class_name_means_one_thing_in_a_distribution(distribution: str) -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, file in modules(distribution).items():
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def aliases(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield name and meaning of each type alias, which its capitals tell from a constant."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name, ast.unparse(node.value)


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_type_alias_means_one_thing_in_a_distribution(distribution: str) -> None:
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for file in modules(distribution).values():
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                meanings[node.name].add(f"class {node.name}")
        for name, meaning in aliases(tree(file)):
            meanings[name].add(meaning)
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def groups_of_support() -> dict[str, list[Path]]:
    """Return the modules of each folder that tests share."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(SUPPORT.rglob("*.py")):
        if not file.name.startswith("__"):
            found[file.relative_to(SUPPORT).parts[0]].append(file)
    return found


def test_what_tests_share_is_in_groups_which_its_page_names() -> None:
    page = (SUPPORT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == sorted(groups_of_support())


def test_a_group_of_what_tests_share_is_taken_in_at_a_glance() -> None:
    folders = Counter(file.parent for group in groups_of_support().values() for file in group)
    assert {str(f): n for f, n in folders.items() if n > MAX_MODULES_PER_FOLDER} == {}
