"""What is wrong with commands of others in the documentation, where they are about our things."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import jsonschema
from kopf.cli import main as kopf

from asyncjob_gateway.app import make_app
from support.docs.blocks import ROOT

GATEWAYS = {"localhost:8080", "$GATEWAY", "jobs.example"}
OTHER_HOSTS = {
    "localhost:9100": "metrics of an operator whose port was forwarded",
    "127.0.0.1:8000": "the API of examples/limited_api.py, which the page's own test calls",
    "127.0.0.1:8090": "the web hook of a recipe, whose test calls it",
}
"""Hosts that no gateway answers for, and what does."""

ON_THE_SYSTEM = {
    **dict.fromkeys(("for", "done", "true", "export", "source", "sleep", "kill"), "the shell's"),
    **dict.fromkeys(
        (
            *("awk", "cat", "chmod", "echo", "find", "grep", "gzip", "printf", "rm", "sed", "sh"),
            *("sha256sum", "sort", "tail", "timeout", "uniq", "wc"),
        ),
        "of every Linux; bash has read the line, and what it is part of is run or checked",
    ),
    "celery": "only who comes from it has it; the recipe's page says so",
    "cosign": "verifies a release, and there is none before the first",
    "jq": "reads files that the page's other commands write",
    "openssl": "signs what the recipe's test sends",
}
"""Programs of others whose options nobody looks at here, and why that is enough."""

_DISTRIBUTIONS = {
    "asyncjob-dev": "dev",
    "asyncjob-operator": "operator",
    "asyncjob-sdk": "sdk",
    "asyncjob-worker": "worker-image",
}
_OTHER_DISTRIBUTIONS = {"s3fs": "the driver of a store that is not ours"}
_OPTION_WITH_VALUE = {"-H", "-X", "-d", "--retry", "--retry-delay"}


def of_curl(words: Sequence[str]) -> Iterator[str]:
    """Yield routes, parameters and bodies that the gateway does not take."""
    options = {word: words[at + 1] for at, word in enumerate(words) if word in _OPTION_WITH_VALUE}
    plain = [
        word
        for at, word in enumerate(words)
        if not word.startswith("-") and (at == 0 or words[at - 1] not in _OPTION_WITH_VALUE)
    ]
    for address in plain:
        url = urlsplit(address if "://" in address else f"http://{address}")
        if url.netloc in GATEWAYS:
            method = options.get("-X", "POST" if "-d" in options else "GET").lower()
            yield from _of_route(method, url.path, dict(parse_qsl(url.query)), options.get("-d"))
        elif url.netloc not in OTHER_HOSTS:
            yield f"nobody knows what answers at {url.netloc}"


@cache
def _document() -> Any:
    return make_app().openapi()


def _of_route(method: str, path: str, query: Mapping[str, str], body: str | None) -> Iterator[str]:
    for template, operations in _document()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method in operations:
            known = {one["name"] for one in operations[method].get("parameters", [])}
            yield from (f"{path} takes no {name}" for name in query if name not in known)
            if body and body.startswith("{"):
                yield from _of_body(operations[method], body)
            return
    yield f"the gateway has no {method.upper()} {path}"


def _of_body(operation: Any, body: str) -> Iterator[str]:
    try:
        found = json.loads(body, parse_constant=float)
    except ValueError as error:
        yield str(error)
        return
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": _document()["components"]}
    for wrong in jsonschema.Draft202012Validator(whole).iter_errors(found):
        yield f"{wrong.json_path}: {wrong.message}"


def of_pip(words: Sequence[str]) -> Iterator[str]:
    """Yield distributions and extras that we do not have."""
    for word in words[1:]:
        found = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?", word)
        if word.startswith("-") or not found:
            continue
        name, extras = found[1], (found[2] or "").split(",")
        if name in _DISTRIBUTIONS:
            there = _extras(_DISTRIBUTIONS[name])
            yield from (f"{name} has no extra {one}" for one in extras if one not in {"", *there})
        elif name not in _OTHER_DISTRIBUTIONS:
            yield f"nobody knows {name}"


@cache
def _extras(folder: str) -> set[str]:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    return set(tomllib.loads(text)["project"].get("optional-dependencies", {}))


def of_docker(words: Sequence[str]) -> Iterator[str]:
    """Yield build arguments that a Dockerfile of ours does not declare."""
    if words[0] != "build":
        return
    file = ROOT / words[words.index("--file") + 1]
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for at, word in enumerate(words):
        if word == "--build-arg":
            name = words[at + 1].partition("=")[0]
            if not re.search(rf"^ARG {name}\b", text, re.MULTILINE):
                yield f"the Dockerfile has no argument {name}"
        if word == "--secret":
            name = words[at + 1].partition(",")[0]
            if name not in text:
                yield f"the Dockerfile has no secret {name}"


def of_kopf(words: Sequence[str]) -> Iterator[str]:
    """Yield what kopf's command line would refuse."""
    command = kopf.commands[words[0]]
    try:
        command.make_parser(click.Context(command)).parse_args(list(words[1:]))
    except click.UsageError as error:
        yield error.message


OTHERS: Mapping[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "curl": of_curl,
    "docker": of_docker,
    "kopf": of_kopf,
    "pip": of_pip,
}
