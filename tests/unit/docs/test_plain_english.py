"""What users read first has no words that a reader has to look up, or to guess at."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
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

ROOT = Path(__file__).parents[3]
SOURCES = ("sdk/src", "worker-image/src", "operator/src")
LOGGING = {"debug", "info", "warning", "error", "exception"}

BANNED = re.compile(
    r"\b(so many|so long|so often|anew|whoever|for ever|(?<!there )is no(?! longer)|heeds?)\b"
    r"|\b(wish|wishes|told|laws?)\b",
    re.IGNORECASE,
)


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


def archaic(texts: Iterator[tuple[str, str]]) -> list[str]:
    """Return the banned words with their places; there have to be texts at all."""
    found = dict(texts)
    assert len(found) > 5, "found too few texts to be all of them"
    return [f"{place}: {text}" for place, text in found.items() if BANNED.search(text)]


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


def all_messages() -> Iterator[tuple[str, str]]:
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for line, text in messages_in(tree):
                yield f"{file.relative_to(ROOT)}:{line}: {text}", text


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
    assert archaic(all_messages()) == []


def test_a_message_is_found_in_what_is_raised_and_logged() -> None:
    code = 'raise ValueError(f"{x} is no duration")\nlog.info("starts anew", why="so many")'
    assert [text for _, text in messages_in(ast.parse(code)) if BANNED.search(text)] == [
        " is no duration",
        "starts anew",
        "so many",
    ]


@pytest.mark.parametrize("text", ["At most so many jobs.", "'x' is no duration", "starts anew"])
def test_a_word_of_the_list_is_found(text: str) -> None:
    assert BANNED.search(text)
