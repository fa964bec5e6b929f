"""One word per concept: a word that was replaced comes back nowhere, and ids are called alike.

The glossary has the words that are used. `Law` was one for a rule, `wish` for the request that a
control field makes, and so on.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[3]

RETIRED = frozenset(
    {
        *("law", "laws", "wish", "wishes", "wished", "wishing", "placeless", "stranded"),
        *("keeper", "keepers", "pulse", "pulses", "drawer", "drawers", "containment"),
        *("desk", "desks", "errand", "errands", "sighting", "sightings"),
        *("allotment", "announcer", "autopsy", "census", "childless", "desertion", "emissions"),
        *("farewell", "hall", "halls", "kin", "kinship", "leftovers", "legality", "lifeline"),
        *("occupancy", "reckoning", "rival", "rivals", "roster", "shelf", "spool"),
        *("surroundings", "tenure", "untie", "unwant", "upkeep", "watchman", "anew", "boss"),
        *("announcement", "announcements", "attendance", "barred", "dealt"),
        *("agenda", "doubts", "inbox", "storms", "todo"),
    }
)
"""Words that are in no identifier, message, comment or page, those of the tests included."""

IN_NO_CLASS_NAME = frozenset(
    {
        *("bench", "ear", "ears", "ground", "rival", "rivals", "scene", "scenes", "seat", "seats"),
        *("stage", "tenure", "town", "world", "worlds"),
        *("clerk", "house", "office", "oracle", "shop", "tally", "weather", "workshop"),
        *("notice", "notices", "told"),
    }
)
"""Pictures that no class has in its name, those of the tests included.

What a test sets up is called after what it holds: a `…Harness` is the part under test with fakes
around it, a `…Setup` what is prepared on an API server.
"""

NAMES_NOTHING = {"notices": "an EventRecorder is a `recorder`"}
"""Plain words in a text that no variable, parameter or attribute is named by → what it is named."""

CLASSES_AS_THEY_ARE = {
    "BenchError": "the errors of `asyncjob_bench`",
    "World": "what `make prove` searches, as docs/explanation/proof.md defines it",
}
"""Class → why it may have such a word."""

ANY_OF_THEM = re.compile("|".join(sorted(RETIRED)))
"""Finds quickly which files are worth a closer look."""

EXCEPTIONS = {
    "dev/asyncjob_dev/binaries/gobuild.py": ({"announcement"}, "what a program says in advance"),
    "dev/asyncjob_dev/release/writes.py": (
        {"wish"},
        "names of writes in the files that are kept of each release, which are read by them",
    ),
    "tests/unit/docs/test_plain_english.py": (
        {"laws", "wish", "wishes", "anew"},
        "a list of words that users do not read",
    ),
    "tests/unit/docs/test_retired_words.py": (RETIRED, "this list"),
    "docs/explanation/submitting-once.md": ({"rival"}, "plain English for another submitter"),
}
"""Path → words that it may have, and why."""

SUFFIXES = {".py", ".md", ".yaml", ".html", ".js", ".toml", ".tpl", ".txt", ".sh"}
LEFT_OUT = (
    "tests/releases/",  # what was released stays as it was
    "CHANGELOG.md",  # and so does what was said of it
    "dev/tools/",  # sources of others' programs
    "requirements/",
)


@cache
def files() -> tuple[str, ...]:
    """Return the tracked text files, those of others left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    found = tuple(
        name
        for name in listed
        if Path(name).suffix in SUFFIXES
        and not name.startswith(LEFT_OUT)
        and (ROOT / name).is_file()
    )
    assert len(found) > 500, "found too few files to be all of them"
    return found


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case, those inside of identifiers included."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)
    return {part.lower() for part in parts}


def retired_words_of(name: str) -> set[str]:
    excepted, _ = EXCEPTIONS.get(name, (frozenset[str](), ""))
    text = f"{name} {(ROOT / name).read_text(encoding='utf-8')}"
    if not ANY_OF_THEM.search(text.lower()):
        return set()
    return words_of(text) & RETIRED - excepted


def test_a_retired_word_is_nowhere() -> None:
    found = {name: sorted(retired_words_of(name)) for name in files()}
    assert {name: words for name, words in found.items() if words} == {}


def test_every_exception_is_still_needed() -> None:
    for name, (words, _) in EXCEPTIONS.items():
        there = words_of((ROOT / name).read_text(encoding="utf-8"))
        assert words <= there, f"{name}: no longer has {sorted(words - there)}"


def test_no_class_is_named_by_a_picture() -> None:
    found = {f"{path}: {name}" for path, name in class_names() if is_a_picture(name)}
    assert found == set()
    defined = {name for _, name in class_names()}
    assert CLASSES_AS_THEY_ARE.keys() <= defined


def test_a_word_that_names_nothing_is_the_name_of_nothing() -> None:
    any_of_them = re.compile("|".join(sorted(NAMES_NOTHING)))
    near = [path for path in python_files() if any_of_them.search((ROOT / path).read_text("utf-8"))]
    assert near, "no file has such a word; then it can be retired altogether"
    found = {
        path: names_in(ast.parse((ROOT / path).read_text("utf-8"))) & NAMES_NOTHING.keys()
        for path in near
    }
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    ["self.notices = 1", "notices.record(event)", "def post(notices): ...", "post(notices=1)"],
)
def test_a_name_is_found_wherever_code_may_have_it(code: str) -> None:
    assert "notices" in names_in(ast.parse(code))


DEFINITION: Final = re.compile(r"^\s*class (\w+)\b *[(:\[]", re.MULTILINE)


def names_in(tree: ast.AST) -> set[str]:
    """Return the names of the variables, parameters and attributes in a piece of code."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case _:
                pass
    return found


def python_files() -> list[str]:
    return [path for path in files() if path.endswith(".py")]


@cache
def class_names() -> list[tuple[str, str]]:
    """Return the classes of all Python files, each with its file, and those in texts of tests."""
    # To parse all files takes a busy machine a minute.
    return [
        (path, name)
        for path in python_files()
        for name in DEFINITION.findall((ROOT / path).read_text("utf-8"))
    ]


def is_a_picture(name: str) -> bool:
    return name not in CLASSES_AS_THEY_ARE and bool(words_of(name) & IN_NO_CLASS_NAME)


@pytest.mark.parametrize("name", ["Scene", "_Stage", "WorldOfJobs", "FakeEar"])
def test_a_picture_is_found_inside_of_a_class_name(name: str) -> None:
    assert is_a_picture(name)


@pytest.mark.parametrize("name", ["Search", "StagedFiles", "Benchmark", "Background"])
def test_a_plain_word_that_contains_a_picture_is_none(name: str) -> None:
    assert not is_a_picture(name)


@pytest.mark.parametrize(
    ("text", "word"),
    [("def stop_keeper():", "keeper"), ("class WishError", "wish"), ('"no law"', "law")],
)
def test_a_retired_word_is_found_inside_of_names_and_texts(text: str, word: str) -> None:
    assert word in words_of(text) & RETIRED


@pytest.mark.parametrize("text", ["flawless()", "withdrawers", "impulse", "lawn"])
def test_a_longer_word_is_another(text: str) -> None:
    assert not words_of(text) & RETIRED


def ids_of(folder: str) -> Iterator[tuple[str, str]]:
    """Return the constants of modules that name a rule or a policy, with the id of each."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.AnnAssign(
                    target=ast.Name(id=constant), value=ast.Constant(value=str(found))
                ):
                    if re.fullmatch(r"[a-z-]+", found) and not constant.endswith("_LABEL"):
                        yield constant, found
                case ast.AnnAssign(
                    target=ast.Name(id=constant),
                    value=ast.Call(
                        func=ast.Name(id="Rule"), args=[ast.Constant(value=str(found)), *_]
                    ),
                ):
                    yield constant, found


@pytest.mark.parametrize(
    ("folder", "at_least"),
    [
        ("sdk/src/asyncjob/rules", 50),
        ("operator/src/asyncjob_operator/core/policies", 15),
        ("operator/src/asyncjob_operator/core/schedules", 5),
    ],
)
def test_a_constant_is_called_as_its_id_is(folder: str, at_least: int) -> None:
    found = list(ids_of(folder))
    assert len(found) >= at_least
    for constant, name in found:
        assert constant.strip("_") == re.sub(r"[^a-z]", "_", name).upper()
