"""The recipes show code that is there, name tests that are there, and have all their parts."""

import re
from pathlib import Path

import pytest
import yaml

from asyncjob import AsyncCronJob, AsyncJob, AsyncQueue
from support.docs.recipe_page import FOLDER, NOT_RUN, Block, blocks, missing_lines, steps

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
PAGES = sorted(set(FOLDER.glob("*.md")) - {FOLDER / "README.md"})
TESTS = (ROOT / "tests/integration/recipes/test_recipes.py").read_text(encoding="utf-8")
MODELS = {"AsyncJob": AsyncJob, "AsyncCronJob": AsyncCronJob, "AsyncQueue": AsyncQueue}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def shown(page: Path) -> list[Path]:
    """Return the files below `examples` that a page links."""
    links = re.findall(r"\]\((\.\./\.\./examples/[^)#]+)\)", page.read_text(encoding="utf-8"))
    return [(page.parent / link).resolve() for link in links]


def test_there_are_ten_and_the_index_has_each() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) == 10
    assert [page.name for page in PAGES if f"]({page.name})" not in index] == []


@each_page
def test_a_recipe_says_what_dies_and_what_its_limits_are(page: Path) -> None:
    titles = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert titles[-2:] == ["What happens when something dies", "Limits"]


@each_page
def test_a_recipe_shows_only_lines_of_files_that_run(page: Path) -> None:
    files = shown(page)
    assert all(file.exists() for file in files)
    sources = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    for block in blocks(page):
        if block.language in {"python", "yaml"} and not block.not_run:
            assert any(block.text in source for source in sources), block.text


@each_page
def test_a_block_that_no_test_runs_says_why(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= {"python", "yaml", "console"}
    assert page.read_text(encoding="utf-8").count(NOT_RUN) == len(
        [block for block in blocks(page) if block.not_run]
    )


@each_page
def test_the_commands_of_a_recipe_are_run_by_a_test_of_its_own(page: Path) -> None:
    assert f'@page("{page.name}")' in TESTS
    found = steps(page)
    assert [step.starts_environment for step in found].count(True) == 1
    assert len(found) > 4


@each_page
def test_a_recipe_starts_an_app_that_is_there(page: Path) -> None:
    [options] = [step.options() for step in steps(page) if step.starts_environment]
    module, _, name = options.get("APP", "examples.handlers:app").partition(":")
    assert name == "app"
    assert (ROOT / f"{module.replace('.', '/')}.py").exists() or (
        ROOT / module.replace(".", "/") / "__init__.py"
    ).exists()


@pytest.mark.parametrize(
    "file", sorted((EXAMPLES / "recipes").rglob("*.yaml")), ids=lambda file: file.stem
)
def test_the_manifests_fit_their_models(file: Path) -> None:
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        if model := MODELS.get(document["kind"]):
            model.model_validate(document)
    assert file.read_text(encoding="utf-8").startswith("# ")


def test_every_file_of_the_recipes_is_linked_by_one() -> None:
    linked = {file for page in PAGES for file in shown(page)}
    folders = {file.parent for file in linked}
    for file in (EXAMPLES / "recipes").rglob("*"):
        if file.suffix in {".py", ".yaml"} and file.name != "__init__.py":
            assert file in linked or file.parent in folders, file


def test_the_comparison_is_dated_and_sources_what_it_says_of_each_system() -> None:
    text = (ROOT / "docs/explanation/comparison.md").read_text(encoding="utf-8")
    assert re.search(r"Written on \d+\s+\w+\s+\d{4}", text)
    systems = re.split(r"\n## ", text)[2:]
    assert len(systems) == 8
    for system in systems:
        name, _, body = system.partition("\n")
        facts = re.split(r"\n- ", body.split("**Better")[0])[1:]
        assert facts, name
        assert [fact for fact in facts if "](https://" not in fact] == [], name
        assert body.count("**Better") == 2, name


def test_a_page_is_read_as_a_reader_reads_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n```console\n$ make up APP=a.b:app QUEUES=x\n$ one\nsaid … here\n```\n\n"
        f"{NOT_RUN}no such program -->\n```console\n$ two\n```\n"
    )
    first, second = blocks(page)
    assert (first.not_run, second.not_run) == ("", "no such program")
    assert isinstance(first, Block)
    up, one = steps(page)
    assert (up.options(), up.is_setup) == ({"APP": "a.b:app", "QUEUES": "x"}, True)
    assert (one.command, one.printed, one.is_refused) == ("one", ["said … here"], False)


@pytest.mark.parametrize(
    ("wanted", "printed", "missing"),
    [
        (["a  b"], "a b\n", []),
        (["a b"], "a    b\n", []),
        (["a … c"], "x\na b c\ny\n", []),
        (["a", "c"], "c\na\n", ["c"]),
        (["a"], "ab\n", ["a"]),
    ],
)
def test_what_is_printed_is_compared_line_by_line(
    wanted: list[str], printed: str, missing: list[str]
) -> None:
    assert missing_lines(wanted, printed) == missing
