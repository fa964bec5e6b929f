"""What is wrong with a command line in the documentation, by the programs' own options."""

import importlib.util
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import click
import yaml

from asyncjob.cli.entry import root
from asyncjob_dev.cli import main as development
from asyncjob_gateway.cli import main as gateway
from asyncjob_operator.cli import main as operator
from asyncjob_worker.cli import main as worker
from support.docs.blocks import ROOT
from support.docs.manifests import RESOURCES, of_values, unknown_path
from support.docs.other_commands import ON_THE_SYSTEM, OTHERS

PROGRAMS: Mapping[str, click.Command] = {
    "asyncjob": root,
    "asyncjob-worker": worker,
    "asyncjob-operator": operator,
    "asyncjob-gateway": gateway,
}
MODULES: Mapping[str, click.Command] = {"asyncjob_dev": development}
ANYTHING = "…"
"""Stands for what a reader has to fill in."""

_SEPARATORS = set("|&;()<>")
_STARTERS = {"do", "then", "!", "$", "if"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_FOLDERS = tuple(f"{folder}/" for folder in ("examples", "charts", "crds", "dev", "worker-image"))
_KUBECTL_VALUES = {
    *("-n", "-l", "-o", "-f", "-p", "--namespace", "--selector", "--field-selector", "--as"),
    *("--type", "--for", "--timeout", "--context", "--subresource", "--duration", "--audience"),
}
_KUBECTL_VERBS = {
    *("annotate", "api-resources", "apply", "auth", "config", "create", "delete", "describe"),
    *("edit", "exec", "explain", "get", "label", "logs", "patch", "port-forward", "replace"),
    *("rollout", "scale", "set", "top", "version", "wait"),
}
_OTHER_KINDS = {
    *("clusterrole", "clusterrolebinding", "configmap", "crd", "crds", "cronjob", "deployment"),
    *("deployments", "events", "job", "jobs", "jobs.batch", "lease", "leases", "namespace"),
    *("namespaces", "node", "nodes", "pod", "pods", "role", "rolebinding", "secret"),
    *("serviceaccount", "token", "validatingadmissionpolicies", "validatingadmissionpolicy"),
}
_JSON_PATH = re.compile(r"(?<![\w\]])\.((?:spec|status)[\w.]*)")


def complaints(command: str) -> Iterator[str]:
    """Yield what is wrong with the parts of a command line that are ours."""
    for words in simple_commands(command):
        for complaint in _of_words(words):
            yield f"{' '.join(words)}: {complaint}"


def simple_commands(command: str) -> Iterator[list[str]]:
    """Yield the commands of a line that a shell would start, without what it redirects."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    skip = in_list = False
    for token in lexer:
        if in_list or (token == "(" and words and words[-1].endswith("=")):  # NAME=(…)
            in_list = token != ")"
            continue
        if token.startswith("#"):
            break
        if set(token) <= _SEPARATORS:
            if token in {">", ">>", "<", "<<<", "<<", ">&"}:
                skip = True
                continue
            yield from _meant(words)
            words = []
        elif skip:
            skip = False
        else:
            words.append(token)
    yield from _meant(words)


def _meant(words: list[str]) -> Iterator[list[str]]:
    """Yield the command without what only says how it is started."""
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _STARTERS):
        words = words[1:]
    if words[:1] == ["xargs"]:
        words = [word for word in words[1:] if not word.startswith("-")] + ["NAME"]
    if words:
        yield words


def _of_words(words: Sequence[str]) -> Iterator[str]:
    program, *rest = words
    name = program.removeprefix(".venv/bin/")
    if name == "kubectl" and rest[:1] == ["asyncjob"]:
        name, rest = "asyncjob", rest[1:]
    if name in PROGRAMS:
        yield from of_click(PROGRAMS[name], name, rest)
    elif name in _OTHERS:
        yield from _OTHERS[name](rest)
    elif name not in ON_THE_SYSTEM:
        yield f"there is no program {name}"
    for word in rest if name in {"helm", "kubectl", "docker"} else []:
        if word.startswith(_FOLDERS) and not (ROOT / word).exists():
            yield f"{word} is not there"


def of_click(
    command: click.Command, name: str, words: Sequence[str], parent: click.Context | None = None
) -> Iterator[str]:
    """Yield what a command of ours would refuse; values that are files are not looked at."""
    if ANYTHING in words:
        words = [word for word in words if word != ANYTHING]
    context = command.context_class(command, info_name=name, parent=parent)
    context.allow_interspersed_args = command.allow_interspersed_args
    if isinstance(command, click.Group):
        context.allow_interspersed_args = False
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        yield error.message
        return
    if isinstance(command, click.Group):
        if not rest:
            return
        below = command.get_command(context, rest[0])
        if below is None:
            yield f"{name} has no command {rest[0]}"
        else:
            yield from of_click(below, rest[0], rest[1:], context)
        return
    if rest:
        yield f"too many arguments: {rest}"
    yield from _of_values(command, context, values)


def _of_values(
    command: click.Command, context: click.Context, values: Mapping[str, Any]
) -> Iterator[str]:
    for parameter in command.params:
        value = values.get(parameter.name or "")
        given = [one for one in (value if isinstance(value, tuple) else (value,)) if _is_text(one)]
        if parameter.required and not given:
            yield f"{parameter.human_readable_name} is missing"
        if isinstance(parameter.type, click.Choice | click.types.IntParamType):
            for one in given:
                try:
                    parameter.type.convert(one, parameter, context)
                except click.BadParameter as error:
                    if not one.isupper():  # a placeholder
                        yield error.message


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ANYTHING


@cache
def targets() -> Mapping[str, str]:
    """Return the Makefile's targets with what they run."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.finditer(r"^(?P<name>[a-z0-9-]+):(?P<body>.*(?:\n\t.*)*)", text, re.MULTILINE)
    return {one["name"]: one["body"] for one in found}


def _of_make(words: Sequence[str]) -> Iterator[str]:
    asked = [word for word in words if "=" not in word and not word.startswith("-")]
    for name in asked:
        if name not in targets():
            yield f"make has no target {name}"
    bodies = "".join(targets().get(name, "") for name in asked)
    for word in words:
        variable, equals, _ = word.partition("=")
        if equals and not re.search(rf"[(,]{variable}\b", bodies):
            yield f"make {' '.join(asked)} takes no {variable}"


def _of_helm(words: Sequence[str]) -> Iterator[str]:
    """Yield values of our chart that its schema refuses."""
    if not any(word.startswith("charts/asyncjob") for word in words):
        return
    for option, setting in pairwise(words):
        if option == "--set":
            path, _, value = setting.partition("=")
            document: Any = yaml.safe_load(value)
            for name in reversed(path.split(".")):
                document = {name: document}
            yield from of_values(document)


def _of_python(words: Sequence[str]) -> Iterator[str]:
    if words[:1] != ["-m"]:
        return
    module, *rest = words[1:]
    file = ROOT / module.replace(".", "/")
    if module in MODULES:
        yield from of_click(MODULES[module], module, rest)
    elif module.startswith("examples."):
        if not file.is_dir() and not file.with_suffix(".py").is_file():
            yield f"there is no module {module}"
    elif not importlib.util.find_spec(module):
        yield f"there is no module {module}"


def _of_kubectl(words: Sequence[str]) -> Iterator[str]:
    plain, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            plain.append(word)
        skip = word in _KUBECTL_VALUES and not skip
    verb, *rest = plain or [""]
    if verb not in _KUBECTL_VERBS:
        yield f"kubectl has no {verb}"
    resource = None
    if verb in {"get", "delete", "describe", "edit", "patch", "wait", "annotate", "label"} and rest:
        for kind in rest[0].partition("/")[0].split(","):
            resource = RESOURCES.get(kind)
            if resource is None and kind not in _OTHER_KINDS and kind != "{}":
                yield f"there is no kind {kind}"
    if resource:
        yield from _of_resource(words, resource)


def _of_resource(words: Sequence[str], resource: Mapping[str, Any]) -> Iterator[str]:
    """Yield fields that the kind does not have, in selectors, JSON paths and patches."""
    for option, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, inline = option.partition("=")
        value = inline if equals else following
        if name == "--field-selector":
            yield from _of_selector(value, resource)
        elif name == "-p" and value.startswith("{"):
            yield from _of_patch(json.loads(value), resource)
        elif "jsonpath" in option:
            for path in _JSON_PATH.findall(option):
                if missing := unknown_path(_nested(path), resource):
                    yield f"there is no {missing}"


def _of_selector(selector: str, resource: Mapping[str, Any]) -> Iterator[str]:
    selectable = {one["jsonPath"][1:] for one in resource["selectableFields"]}
    for one in selector.split(","):
        field = re.split(r"!?=", one)[0]
        if field not in selectable and not field.startswith("metadata."):
            yield f"{field} cannot be selected by"


def _of_patch(patch: Any, resource: Mapping[str, Any]) -> Iterator[str]:
    for part in ("spec", "status"):
        if part in patch and (path := unknown_path(patch[part], resource, part)):
            yield f"there is no {path}"


def _nested(path: str) -> Any:
    first, _, rest = path.strip(".").partition(".")
    return {first: _nested(rest) if rest else None}


_OTHERS: Mapping[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "make": _of_make,
    "helm": _of_helm,
    "kubectl": _of_kubectl,
    "python": _of_python,
    "python3": _of_python,
    **OTHERS,
}
