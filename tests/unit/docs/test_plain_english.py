"""What users read first has no words that a reader has to look up, or to guess at.

Docstrings are read by fewer people, and have fewer words banned: those that are plainly archaic.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import pytest

from asyncjob.cli.entry import root
from asyncjob.explanations.catalog import catalog
from asyncjob.rules.policies import POLICIES
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd
from asyncjob_gateway.cli import main as gateway
from asyncjob_gateway.problem_types import PROBLEM_TYPES
from asyncjob_operator.cli import main as operator
from asyncjob_worker.cli import main as worker
from support.docs.blocks import ROOT, paragraphs_of

SOURCES = ("sdk/src", "worker-image/src", "operator/src")
LOGGING = {"debug", "info", "warning", "error", "exception"}

BANNED = re.compile(
    r"\b(so many|so long|so often|anew|whoever|for ever|(?<!there )is no(?! longer)|heed(s|ed)?)\b"
    r"|\b(wish|wishes|told|laws?)\b",
    re.IGNORECASE,
)

ARCHAIC = re.compile(
    r"\b(so (many|much|long|often)(?! (that|as)\b)|anew|whoever|for ever|heed(s|ed)?)\b"
    r"|\bno more(?=$|[.,:;)])",
    re.IGNORECASE,
)
"""What no docstring has. Plain are: that many, again, who or anyone who, forever, no longer."""

READ_FIRST = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
NOT_READ: Mapping[str, str] = {
    "docs/adr/": "decisions stay as they were written",
}
"""Pages, or how they begin, and why they may have the words."""

LEGITIMATE: Mapping[tuple[str, str], str] = {
    ("docs/how-to/write-idempotent-handlers.md", "Stop when told to"): "a handler is told to stop",
}
"""Page and phrase: why the word is the plain one there."""


def command_texts(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield f"{name} {parameter.opts[0]}", parameter.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found
            yield from command_texts(f"{name} {each}", found)


def schema_texts(path: str, schema: Any) -> Iterator[tuple[str, str]]:
    match schema:
        case dict():
            if isinstance(schema.get("description"), str):
                yield path, schema["description"]
            for key, value in schema.items():
                yield from schema_texts(f"{path}.{key}", value)
        case list():
            for number, value in enumerate(schema):
                yield from schema_texts(f"{path}[{number}]", value)


def archaic(texts: Iterator[tuple[str, str]], banned: re.Pattern[str] = BANNED) -> list[str]:
    """Return the banned words with their places; there have to be texts at all."""
    found = dict(texts)
    assert len(found) > 5, "found too few texts to be all of them"
    return [f"{place}: {text}" for place, text in found.items() if banned.search(text)]


def rule_texts() -> Iterator[tuple[str, str]]:
    for policy in POLICIES:
        yield policy.name, policy.title
        for rule in policy.rules:
            yield rule.id, f"{rule.description} {rule.message_cel}"


def messages_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of what a module raises and logs, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Call() as call):
                pass
            case ast.Call(func=ast.Attribute(attr=attr)) as call if attr in LOGGING:
                pass
            case _:
                continue
        for part in ast.walk(call):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.lineno, part.value


def docstrings_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, those below constants and fields included, each as one line."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, " ".join(text.split())
            case _:
                pass


def in_sources(
    texts_in: Callable[[ast.Module], Iterator[tuple[int, str]]],
) -> Iterator[tuple[str, str]]:
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*.py")):
            for line, text in texts_in(ast.parse(file.read_text(encoding="utf-8"))):
                yield f"{file.relative_to(ROOT)}:{line}: {text}", text


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages that are read here, by their names."""
    documents = (file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md"))
    for page in (*READ_FIRST, *sorted(documents)):
        if not page.startswith(tuple(NOT_READ)):
            yield page, (ROOT / page).read_text(encoding="utf-8")


def page_texts() -> Iterator[tuple[str, str]]:
    for page, whole in pages():
        for line, paragraph in paragraphs_of(whole):
            text = paragraph
            for where, phrase in LEGITIMATE:
                text = text.replace(phrase, "") if where == page else text
            yield f"{page}:{line}: {text}", text


def comments_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a YAML file, those of consecutive lines as one, with their lines."""
    comments: dict[int, str] = {}
    begun = last = -1
    for line, written in enumerate(text.splitlines(), 1):
        if found := re.search(r"(?:^|\s)#+(.*)", written):
            begun = begun if last == line - 1 else line
            comments[begun] = f"{comments.get(begun, '')} {found[1].strip()}".strip()
            last = line
    yield from comments.items()


def value_texts() -> Iterator[tuple[str, str]]:
    values = ROOT / "charts/asyncjob/values.yaml"
    for line, text in comments_in(values.read_text(encoding="utf-8")):
        yield f"{values.name}:{line}", text


def test_the_help_of_all_commands_is_plain() -> None:
    for name, command in {
        "asyncjob": root,
        "asyncjob-operator": operator,
        "asyncjob-gateway": gateway,
        "asyncjob-worker": worker,
    }.items():
        assert archaic(command_texts(name, command)) == []


def test_what_kubectl_explain_says_is_plain() -> None:
    assert archaic(schema_texts("crds", [crd(one) for one in CUSTOM_RESOURCES])) == []


def test_what_an_admission_rule_says_is_plain() -> None:
    assert archaic(rule_texts()) == []


def test_what_the_catalogue_of_errors_says_is_plain() -> None:
    texts = ((one.code, f"{one.means} {one.why} {one.do} {one.example}") for one in catalog())
    assert archaic(texts) == []


def test_problems_of_the_gateway_are_plain() -> None:
    assert archaic((one.slug, f"{one.title}. {one.meaning}") for one in PROBLEM_TYPES) == []


def test_errors_and_log_lines_are_plain() -> None:
    assert archaic(in_sources(messages_in)) == []


def test_no_docstring_is_archaic() -> None:
    assert archaic(in_sources(docstrings_in), ARCHAIC) == []


def test_the_pages_are_plain() -> None:
    assert archaic(page_texts()) == []


def test_the_values_of_the_chart_are_explained_plainly() -> None:
    assert archaic(value_texts()) == []


@pytest.mark.parametrize(("page", "phrase"), LEGITIMATE)
def test_each_legitimate_use_is_there_and_needs_its_reason(page: str, phrase: str) -> None:
    assert BANNED.search(phrase)
    assert any(phrase in text for _, text in paragraphs_of(dict(pages())[page]))


def test_each_page_that_is_not_read_is_there() -> None:
    assert [page for page in NOT_READ if not (ROOT / page).exists()] == []


def test_a_word_is_found_in_a_paragraph_and_not_in_its_code() -> None:
    text = "# Told\n\nIt is `told` so\nlong.\n\n```\nanew\n```\n\n| A |\n| --- |\n| whoever |\n"
    found = [(line, one[0]) for line, part in paragraphs_of(text) for one in BANNED.finditer(part)]
    assert found == [(1, "Told"), (3, "so long"), (12, "whoever")]


def test_a_word_is_found_in_the_comments_of_a_yaml_file() -> None:
    text = "# kept for so\n# long\na: told  # whoever asks\nb: '#'\n\n# anew\n"
    found = [(line, one[0]) for line, part in comments_in(text) for one in BANNED.finditer(part)]
    assert found == [(1, "so long"), (1, "whoever"), (6, "anew")]


def test_a_message_is_found_in_what_is_raised_and_logged() -> None:
    code = 'raise ValueError(f"{x} is no duration")\nlog.info("starts anew", why="so many")'
    assert [text for _, text in messages_in(ast.parse(code)) if BANNED.search(text)] == [
        " is no duration",
        "starts anew",
        "so many",
    ]


def test_an_archaic_word_is_found_in_every_kind_of_docstring() -> None:
    code = (
        '"""Kept for\n\never."""\nA = 1\n"""So\nmany."""\nclass B:\n    """It counts no more."""\n'
        '    c: int\n    """Whoever asks."""\n    def d(self):\n        """Starts anew."""\n'
    )
    found = [text for _, text in docstrings_in(ast.parse(code)) if ARCHAIC.search(text)]
    assert sorted(found) == [
        "It counts no more.",
        "Kept for ever.",
        "So many.",
        "Starts anew.",
        "Whoever asks.",
    ]


@pytest.mark.parametrize(
    "text",
    ["no more than a page", "no more jobs", "so long as it lives", "so many that", "forever"],
)
def test_a_plain_phrase_like_an_archaic_one_is_none(text: str) -> None:
    assert not ARCHAIC.search(text)


@pytest.mark.parametrize("text", ["At most so many jobs.", "'x' is no duration", "starts anew"])
def test_a_word_of_the_list_is_found(text: str) -> None:
    assert BANNED.search(text)
