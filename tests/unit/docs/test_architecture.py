"""What the architecture page, the glossary and the index of the documentation name is there."""

import ast
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ARCHITECTURE = DOCS / "explanation/architecture.md"
GLOSSARY = DOCS / "glossary.md"
INDEX = DOCS / "README.md"
MAX_FILES_PER_FLOW = 8
FILE_NAME = re.compile(r"`[\w/]+\.py`")
API_SERVER = "What the API server checks"

RULES = ROOT / "sdk/src/asyncjob/rules"

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
CODE_NAME = re.compile(r"`([A-Za-z_][\w.]*\(\)|[A-Z][A-Z_]{2,}|[A-Z][a-z]+[A-Za-z]*(?:\.\w+)*)`")
CRD_FIELD = re.compile(r"Async(?:Job|Queue|CronJob|Array)(?:\.(?:spec|status)\.[\w.]+)?")


@dataclass(frozen=True)
class Unit:
    """A list item, a row of a table or a paragraph, and the page it stands on."""

    page: Path
    text: str

    def files(self) -> list[Path]:
        return [(self.page.parent / target).resolve() for target in LINK.findall(self.text)]

    def code_names(self) -> list[str]:
        names = (name.removesuffix("()") for name in CODE_NAME.findall(self.text))
        return [name for name in names if not CRD_FIELD.fullmatch(name)]

    def crd_fields(self) -> list[str]:
        spans = re.findall(r"`([^`]+)`", self.text)
        return [span for span in spans if CRD_FIELD.fullmatch(span)]


def units_of(page: Path) -> Iterator[Unit]:
    text = page.read_text(encoding="utf-8")
    for block in re.split(r"\n(?=\s*\n|\||\d+\. |- |#)", text):
        yield Unit(page, block.strip())


def label(unit: Unit) -> str:
    return re.sub(r"\W+", "-", unit.text[:40]).strip("-")


@cache
def definitions_of(file: Path) -> frozenset[str]:
    """Return what a module defines itself, members of classes with a dot; not what it imports."""
    return frozenset(defined_names(ast.parse(file.read_text(encoding="utf-8")).body))


def defined_names(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef():
                yield prefix + node.name
                yield from defined_names(node.body, f"{prefix}{node.name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield prefix + name


def flows() -> dict[str, list[Unit]]:
    sections: dict[str, list[Unit]] = {}
    title = ""
    for unit in units_of(ARCHITECTURE):
        if unit.text.startswith("## "):
            title = unit.text.removeprefix("## ")
        elif title.startswith("Flow "):
            sections.setdefault(title, []).append(unit)
    return sections


@cache
def schema_of(kind: str) -> dict[str, Any]:
    for file in (ROOT / "crds").glob("*.yaml"):
        for crd in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if crd["kind"] == "CustomResourceDefinition" and crd["spec"]["names"]["kind"] == kind:
                schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
                return schema
    raise LookupError(kind)


def has_field(path: str) -> bool:
    kind, *fields = path.split(".")
    node = schema_of(kind)
    for field in fields:
        node = node.get("items", node).get("properties", {}).get(field)
        if node is None:
            return False
    return True


UNITS = [*units_of(ARCHITECTURE), *units_of(GLOSSARY)]
LINKING = [unit for unit in UNITS if unit.files()]
NAMING = [unit for unit in UNITS if unit.code_names() and "## In other" not in unit.text]
PAGES = sorted(DOCS.rglob("*.md"))


def in_definitions(unit: Unit) -> bool:
    """Whether the unit speaks of this project, not of what others call a thing."""
    before, _, _ = GLOSSARY.read_text(encoding="utf-8").partition("## In other systems")
    return unit.page != GLOSSARY or unit.text in before


@pytest.mark.parametrize("unit", LINKING, ids=label)
def test_every_file_that_is_linked_exists(unit: Unit) -> None:
    assert [str(file) for file in unit.files() if not file.exists()] == []


@pytest.mark.parametrize("unit", [one for one in NAMING if in_definitions(one)], ids=label)
def test_every_function_and_class_is_defined_in_a_file_linked_beside_it(unit: Unit) -> None:
    files = [file for file in unit.files() if file.suffix == ".py"]
    defined = frozenset[str]().union(*map(definitions_of, files))
    assert [name for name in unit.code_names() if name not in defined] == []


def test_an_import_is_no_definition() -> None:
    file = ROOT / "operator/src/asyncjob_operator/core/decide.py"
    assert "promote_retrying" in file.read_text(encoding="utf-8")
    assert definitions_of(file) == {"POLICY_CHAINS", "DELETION_CHAINS", "decide"}


@pytest.mark.parametrize("unit", [one for one in UNITS if one.crd_fields()], ids=label)
def test_every_field_is_in_the_schema_of_its_resource(unit: Unit) -> None:
    assert [path for path in unit.crd_fields() if not has_field(path)] == []


def test_three_flows_are_walked() -> None:
    assert len(flows()) == 3


@pytest.mark.parametrize("flow", flows())
def test_a_flow_is_read_in_at_most_eight_files(flow: str) -> None:
    files = {file for unit in flows()[flow] for file in unit.files() if file.suffix == ".py"}
    assert 0 < len(files) <= MAX_FILES_PER_FLOW
    assert [unit.text for unit in flows()[flow] if FILE_NAME.search(unit.text)] == []


@pytest.mark.parametrize("flow", flows())
def test_a_flow_says_where_the_api_server_checks(flow: str) -> None:
    anchor = f"[The API server checks](#{API_SERVER.lower().replace(' ', '-')})"
    assert [unit for unit in flows()[flow] if anchor in unit.text]


def test_what_the_api_server_checks_names_the_policies() -> None:
    _, _, after = ARCHITECTURE.read_text(encoding="utf-8").partition(f"## {API_SERVER}\n")
    section, _, _ = after.partition("\n## ")
    unit = Unit(ARCHITECTURE, section)
    assert {file for file in unit.files() if RULES not in file.parents} == set()
    assert len({name for name in unit.code_names() if name.endswith("_POLICY")}) >= 4


@pytest.mark.parametrize("flow", flows())
def test_each_step_of_a_flow_names_what_runs(flow: str) -> None:
    steps = [unit for unit in flows()[flow] if re.match(r"\d+\. ", unit.text)]
    assert [unit.text for unit in steps if not unit.code_names()] == []


def test_each_term_is_defined_once_and_compared_only_if_defined() -> None:
    before, _, after = GLOSSARY.read_text(encoding="utf-8").partition("## In other systems")
    defined, compared = terms(before), terms(after)
    assert len(defined) == len(set(defined))
    assert len(compared) == len(set(compared))
    assert set(compared) <= set(defined)


def terms(text: str) -> list[str]:
    cells = re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)
    return [cell for cell in cells if cell not in {"Term", "---"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_page_is_in_the_index(page: Path) -> None:
    linked = {(DOCS / target).resolve() for target in LINK.findall(INDEX.read_text("utf-8"))}
    # A folder's README lists the pages of that folder: decisions, runbooks, other systems.
    covered = {file for one in linked if one.name == "README.md" for file in listed_in(one)}
    assert page == INDEX or page in linked | covered


def listed_in(readme: Path) -> Iterator[Path]:
    for target in LINK.findall(readme.read_text(encoding="utf-8")):
        file = (readme.parent / target).resolve()
        if file.parent == readme.parent:
            yield file


def test_every_link_of_the_index_leads_somewhere() -> None:
    files = [DOCS / target for target in LINK.findall(INDEX.read_text(encoding="utf-8"))]
    assert [str(file) for file in files if not file.exists()] == []


def test_every_folder_and_module_that_contributors_are_shown_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    shown = [one for one in folders if "/" in one]
    for line in text.splitlines():
        if line.startswith("| ") and "/src/" in line and ":" in line:
            base, inner = line.split("|")[1].strip(" `"), line.split("|")[2].partition(":")[2]
            shown += [f"{base}/{name}" for name in re.findall(r"`(\w+)`", inner)]
    assert [one for one in shown if not (ROOT / one).is_dir()] == []
    for name in re.findall(r"`(asyncjob\w*\.[\w.]+)`", text):
        importlib.import_module(name)
