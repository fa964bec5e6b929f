"""A word in backticks in a docstring or a comment is there in the code, under that very name.

A parameter that is renamed takes its docstring along. So a single word in backticks is one of: an
identifier of the module that says it, a definition or a quoted value of another (for a plain word
such as `names`, of another in the same folder), a module, a field of the CRDs, an option.
Parameters and variables of other modules do not count.
"""

import keyword
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("sdk", "worker-image", "operator", "dev", "simulation", "chaos", "benchmarks")

KNOWN_ELSEWHERE = {
    **dict.fromkeys(("mutmut", "nohup", "go"), "a program"),
    **dict.fromkeys(("edit", "view"), "a built-in ClusterRole of Kubernetes"),
    **dict.fromkeys(("create", "patch"), "a verb of RBAC"),
    **dict.fromkeys(("operate", "control", "signal", "vouch"), "a verb of ours"),
    **dict.fromkeys(("configmaps", "secrets", "resourceNames"), "a word of RBAC"),
    **dict.fromkeys(("OOMKilled", "matchPolicy"), "a word of the Kubernetes API"),
    **dict.fromkeys(("self", "true"), "a word of CEL, or of a label's value"),
    **dict.fromkeys(("deleted", "resync"), "an event of the REST API"),
    **dict.fromkeys(("next", "replace"), "a parameter or field of the REST API"),
    **dict.fromkeys(("doctor", "submit", "export"), "a command"),
    **dict.fromkeys(("Class", "Public", "PREFIX_STOP_WAIT", "WHEN"), "a pattern of names"),
    **dict.fromkeys(("a", "g", "deadletter", "team"), "an example, or a key to press"),
    "templates": "a folder without modules",
    "Host": "a header of HTTP",
    "inc": "a method of prometheus_client",
    "other": "a value of a metric's label",
    "apiserver_request_total": "a metric of the API server",
    "OTEL_TRACES_SAMPLER": "an environment variable of OpenTelemetry",
}
"""Word → what it is where no code of ours has it."""

IN_BACKTICKS = re.compile(r"(?<![`\w])`([A-Za-z_]\w*)`(?![`\w])")
PROSE = re.compile(r'"""[\s\S]*?"""|(?P<text>"(?:[^"\\\n]|\\.)*")|#[^\n]*')
"""Docstrings, other texts, comments; what comes first decides what a quote or a `#` means."""

DEFINITION = re.compile(
    r"^ *(?:async )?(?:def|class|type) (\w+)"  # wherever it is
    r"|^([A-Za-z_]\w*)(?:: [^\n]*)? = "  # a constant
    r"|^    (\w+): [^\n]*[^,\n]$"  # a field; a parameter's line ends with a comma
    r"|^        self\.(\w+)\b",
    re.MULTILINE,
)
QUOTED = re.compile(r'"(?:--)?([A-Za-z_]\w*)"')
CRD_FIELD = re.compile(r"^ +(\w+):", re.MULTILINE)


def split(source: str) -> tuple[str, str]:
    """Return a module's code, with those texts alone that are one word, and its prose."""
    prose: list[str] = []

    def take(match: re.Match[str]) -> str:
        if match["text"]:
            return match["text"] if " " not in match["text"] else '""'
        prose.append(match[0])
        return ""

    return PROSE.sub(take, source), "\n".join(prose)


@cache
def modules() -> dict[str, tuple[str, str]]:
    """Return the code and the prose of each module of ours."""
    found = {
        path.relative_to(ROOT).as_posix(): split(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(found) > 400, "found too few files to be all of them"
    return found


@cache
def known_everywhere() -> frozenset[str]:
    """Return the words that any module may name."""
    found = {*keyword.kwlist, *KNOWN_ELSEWHERE}
    for words in folders().values():
        found.update(word for word in words if not word.islower() or "_" in word)
    for path in (ROOT / "crds").glob("*.yaml"):
        found.update(CRD_FIELD.findall(path.read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def folders() -> dict[str, set[str]]:
    """Return what the modules of each folder define and quote, and what is called so below it."""
    found: dict[str, set[str]] = {}
    for name, (code, _) in modules().items():
        words = {Path(name).stem, *QUOTED.findall(code)}
        words.update(filter(None, (part for one in DEFINITION.findall(code) for part in one)))
        inner, *outer = Path(name).parents
        found.setdefault(inner.as_posix(), set()).update(words)
        for folder in outer:
            found.setdefault(folder.as_posix(), set()).update((*inner.parts, Path(name).stem))
    return found


def unknown_words(name: str, code: str, prose: str) -> Iterator[str]:
    """Yield the words in backticks that neither this code nor any other has."""
    known = known_everywhere() | folders().get(Path(name).parent.as_posix(), set())
    for word in set(IN_BACKTICKS.findall(prose)) - known:
        if not re.search(rf"\b{word}\b", code):
            yield word


def test_a_word_in_backticks_is_one_of_the_code() -> None:
    found = {name: sorted(unknown_words(name, *module)) for name, module in modules().items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_every_word_that_is_known_elsewhere_is_used() -> None:
    used = {word for _, prose in modules().values() for word in IN_BACKTICKS.findall(prose)}
    assert KNOWN_ELSEWHERE.keys() <= used


@pytest.mark.parametrize(
    "source",
    [
        'def run(limit_now: int):\n    """Stop at `limit_before`."""\n',
        "def run(limit_now: int):\n    return limit_now  # `limit_before` is no more\n",
        'LOG = "the limit_before is text"\n"""As `limit_before` says."""\n',
    ],
    ids=["of a parameter", "in a comment", "in prose alone"],
)
def test_a_name_that_is_gone_is_found(source: str) -> None:
    assert list(unknown_words("a.py", *split(source))) == ["limit_before"]
