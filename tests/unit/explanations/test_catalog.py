"""Every code that users meet has an entry, every entry a code that there is, and each a page."""

import ast
import importlib
import pkgutil
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import asyncjob as sdk
import asyncjob_gateway
import asyncjob_operator
import asyncjob_operator.cli as operator
import asyncjob_worker
import asyncjob_worker.cli as worker
from asyncjob.audit.catalog import AUDIT_RULES
from asyncjob.cli import exit_codes as cli
from asyncjob.cli.doctor.findings import DoctorCode
from asyncjob.cli.entry import root
from asyncjob.errors import AsyncJobError, ForbiddenError, NoClusterError, code_of, message_of
from asyncjob.explanations.catalog import catalog, explain, similar_codes
from asyncjob.explanations.texts import Explanation, Kind, by_code, pages, read_page
from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.lifecycle.phases import FINISHED_PHASES, Reason
from asyncjob.lifecycle.schedules import CronReason
from asyncjob.lifecycle.transitions import TRANSITIONS
from asyncjob.schema.manifests import manifests
from asyncjob_dev.errors import DevError
from asyncjob_gateway.problem_types import PROBLEM_TYPES
from asyncjob_operator.core.events import EventReason
from asyncjob_operator.core.queue_stats import DrainedReason
from asyncjob_operator.kube.preflight import FindingCode
from support.parts.cli_shell import Shell

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RULE_IN_MESSAGE = re.compile(r"\(([a-z-]+(?:\.[A-Za-z-]+)+)\)$")
CHART_CODE = re.compile(r"\(asyncjob explain (chart\.[a-z-]+)\)\"")
KUBERNETES = {("policy", "Forbidden"), ("manifests", "Invalid")}
"""Reasons that the API server gives, and the file that has them: they are none of ours."""

DEVELOPMENT = (
    *("asyncjob_bench", "asyncjob_chaos", "asyncjob_dev", "asyncjob_perturbation"),
    "asyncjob_simulation",
)
RULE_FIELDS = {"rule", "expression"}
CLICK_EXIT_CODES = (0, click.ClickException.exit_code, click.UsageError.exit_code)
"""The gateway gives no others: click ends it."""
LINK = re.compile(r"\]\(([^)#]+)")


def enforced_rules() -> set[str]:
    """Return the ids that the messages of the generated CRDs and policies end with."""
    found = (RULE_IN_MESSAGE.search(message) for message in messages(manifests()))
    return {one[1] for one in found if one}


def messages(value: object) -> Iterator[str]:
    """Yield the texts of all fields `message` of validations."""
    match value:
        case dict():
            if isinstance(value.get("message"), str) and RULE_FIELDS & set(value):
                yield value["message"]
            for inner in value.values():
                yield from messages(inner)
        case list() | tuple():
            for inner in value:
                yield from messages(inner)


def in_code() -> dict[Kind, set[str]]:
    """Return the codes that there are, from what defines them."""
    return {
        Kind.RULE: enforced_rules(),
        Kind.JOB_REASON: {reason.value for reason in Reason},
        Kind.CRON_REASON: {reason.value for reason in CronReason},
        Kind.ARRAY_REASON: {reason.value for reason in ArrayReason},
        Kind.PROBLEM: {one.slug for one in PROBLEM_TYPES},
        Kind.ERROR: {*error_codes(), *FindingCode}
        - {one.code for one in catalog() if one.kind is not Kind.ERROR},
        Kind.FINDING: {one for one in DoctorCode if one not in by_code(Kind.ERROR)},
        Kind.CONDITION_REASON: {*DrainedReason, *successes()},
        Kind.EVENT_REASON: {reason.value for reason in EventReason},
        Kind.AUDIT_RULE: {rule.id for rule in AUDIT_RULES},
        Kind.CHART: set(CHART_CODE.findall(refusals_of_the_chart())),
        Kind.EXIT_CODE: {
            *(f"exit-{one.value}" for one in cli.ExitCode),
            *(f"worker-exit-{one.value}" for one in worker.WorkerExitCode),
            *(f"operator-exit-{one.value}" for one in operator.OperatorExitCode),
            *(f"gateway-exit-{one}" for one in CLICK_EXIT_CODES),
        },
    }


def successes() -> set[str]:
    """Return the phases whose condition has their own name as its reason: they have no other."""
    return {
        one.target.value for one in TRANSITIONS if one.target in FINISHED_PHASES and not one.reasons
    }


def refusals_of_the_chart() -> str:
    """Return the text of all templates."""
    templates = (ROOT / "charts/asyncjob/templates").rglob("*")
    return "".join(one.read_text(encoding="utf-8") for one in templates if one.is_file())


def error_codes() -> set[str]:
    """Return the codes of all exceptions of all distributions, those of the base included."""
    for name in ("asyncjob", "asyncjob_worker", "asyncjob_operator", "asyncjob_gateway"):
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    every: list[type[AsyncJobError]] = [AsyncJobError, *subclasses(AsyncJobError)]
    return {kind.code for kind in every} | development_codes()


def development_codes() -> set[str]:
    """Return the codes of what `asyncjob dev` may fail with."""
    known: list[type[DevError]] = [DevError]
    for kind in known:
        known += kind.__subclasses__()
    return {kind.code for kind in known}


def test_each_refusal_of_the_chart_ends_with_its_code() -> None:
    refusals = re.findall(r"\bfail (.*)", refusals_of_the_chart())
    assert len(refusals) > 10
    assert [one for one in refusals if not CHART_CODE.search(one)] == []


def subclasses(kind: type[AsyncJobError]) -> Iterator[type[AsyncJobError]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("asyncjob") and not one.__module__.startswith(DEVELOPMENT):
            yield one
        yield from subclasses(one)


def codes_of(kind: Kind) -> set[str]:
    return {one.code for one in catalog() if one.kind is kind}


def ids(entries: Iterable[Explanation]) -> list[str]:
    return [f"{one.kind.name}-{one.code}" for one in entries]


def examples(program: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of examples that call a program."""
    for one in catalog():
        for line in re.split(r"\n| \|\|? | && ", one.example):
            if line.startswith(f"{program} "):
                yield one.code, line


@pytest.mark.parametrize("kind", in_code())
def test_the_catalogue_has_every_code_and_no_other(kind: Kind) -> None:
    there = in_code()[kind]
    assert len(there) > (2 if kind is Kind.CONDITION_REASON else 5)
    assert codes_of(kind) == there


@pytest.mark.parametrize("package", [sdk, asyncjob_worker, asyncjob_operator, asyncjob_gateway])
def test_no_reason_is_written_that_no_list_has(package: ModuleType) -> None:
    """Reasons come from the lists that the catalogue is compared with, and from no text."""
    [folder] = package.__path__
    files = list(Path(folder).rglob("*.py"))
    assert len(files) > 40
    assert {(file.stem, one) for file in files for one in literal_reasons(file)} <= KUBERNETES


def test_a_reason_that_stands_as_text_in_the_code_is_found(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        'a = {"reason": "One" if b else "Two"}\n'
        'c(reason="Three")\n'
        'd = {"reason": text(e, "reason")}\n',
        encoding="utf-8",
    )
    assert list(literal_reasons(file)) == ["One", "Two", "Three"]


def literal_reasons(file: Path) -> Iterator[str]:
    """Yield the texts that are given as `reason`, as a field or as an argument."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Dict():
                given = [
                    value
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant) and key.value == "reason"
                ]
            case ast.keyword(arg="reason"):
                given = [node.value]
            case _:
                given = []
        for value in given:
            yield from literals(value)


def literals(value: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may have as its value."""
    match value:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.IfExp():
            yield from (*literals(value.body), *literals(value.orelse))
        case ast.BoolOp():
            yield from (text for one in value.values for text in literals(one))


def test_no_kind_has_been_forgotten() -> None:
    assert set(in_code()) == {one.kind for one in catalog()}


def test_a_code_is_explained_once_for_each_kind() -> None:
    assert [
        it for it, n in Counter((one.kind, one.code) for one in catalog()).items() if n > 1
    ] == []


@pytest.mark.parametrize("entry", catalog(), ids=ids(catalog()))
def test_an_entry_says_what_why_what_to_do_and_shows_it(entry: Explanation) -> None:
    for text in (entry.means, entry.why, entry.do):
        assert text
        assert text.endswith("."), text
        assert len(text) < 500
    assert entry.example
    assert "<rest>" not in f"{entry.why} {entry.do} {entry.example}"


@pytest.mark.parametrize("entry", catalog(), ids=ids(catalog()))
def test_its_address_leads_to_its_page(entry: Explanation) -> None:
    page, _, anchor = entry.address.partition("#")
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count(f'<a id="{anchor}"></a>') == 1
    assert f"\n## {entry.code}" in text


def test_no_page_has_an_entry_that_the_catalogue_does_not_have() -> None:
    anchored = {
        (file.stem, anchor)
        for file in (DOCS / "reference/errors").glob("*.md")
        for anchor in re.findall(r'<a id="([^"]+)">', file.read_text(encoding="utf-8"))
    }
    assert anchored == {(one.page, one.code) for one in catalog()}


@pytest.mark.parametrize("entry", catalog(), ids=ids(catalog()))
def test_its_links_lead_somewhere(entry: Explanation) -> None:
    for target in LINK.findall(f"{entry.means} {entry.why} {entry.do}"):
        assert (DOCS / target).is_file(), target


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_can_be_read_in_one_sitting(page: object) -> None:
    file = ROOT / f"sdk/src/asyncjob/explanations/data/{page.name}.toml"  # type: ignore[attr-defined]
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize(("code", "line"), sorted(set(examples("asyncjob"))))
def test_a_command_of_an_example_is_one_that_there_is(code: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(root, info_name="asyncjob", obj=Shell().context())
    command: click.Command = root
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found, (code, line)
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_context(context.info_name, list(words), parent=context.parent)


@pytest.mark.parametrize(
    "asked",
    [
        "history.grows",
        "(history.grows)",
        "HISTORY.GROWS",
        "history.grows.",
        "rules.md#history.grows",
    ],
)
def test_a_code_is_found_as_a_message_has_it(asked: str) -> None:
    assert [one.code for one in explain(asked)] == ["history.grows"]


def test_a_number_is_the_exit_code_of_each_program_that_has_it() -> None:
    assert [one.code for one in explain("3")] == ["exit-3", "worker-exit-3"]


def test_a_code_that_is_written_just_so_counts_before_others_in_another_case() -> None:
    assert [one.kind for one in explain("Duplicate")] == [Kind.JOB_REASON]
    assert [one.kind for one in explain("duplicate")] == [Kind.PROBLEM]
    assert [one.kind for one in explain("DUPLICATE")] == [Kind.JOB_REASON, Kind.PROBLEM]


def test_a_problem_is_found_by_its_type() -> None:
    assert [one.status for one in explain("/problems/no-job")] == [404]


def test_a_code_that_two_kinds_have_is_explained_for_both() -> None:
    assert [one.kind for one in explain("Suspended")] == [
        *(Kind.JOB_REASON, Kind.CRON_REASON, Kind.ARRAY_REASON)
    ]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("history.grow", "history.grows"),
        ("CrashBudget", "CrashBudgetExhausted"),
        ("crash-budget-exhausted", "CrashBudgetExhausted"),
        ("claim.atempt", "claim.attempt"),
    ],
)
def test_a_code_that_is_nearly_right_brings_the_right_one(asked: str, meant: str) -> None:
    assert explain(asked) == ()
    assert similar_codes(asked)[0] == meant


@pytest.mark.parametrize("asked", ["", "???", "4711"])
def test_nonsense_brings_nothing(asked: str) -> None:
    assert explain(asked) == ()
    assert similar_codes(asked) == []


def test_a_field_that_is_misspelt_is_an_error() -> None:
    text = 'kind = "rule"\ntitle = "t"\nintro = "i"\n[a]\nwhy = "w"\ndoo = "d"\nexample = "e"\n'
    with pytest.raises(TypeError):
        read_page("p", text)


def test_every_exception_has_a_code_that_is_explained() -> None:
    assert error_codes() - {one.code for one in catalog()} == set()


def test_a_message_ends_with_the_command_that_explains_it() -> None:
    error = NoClusterError("no cluster\nis configured")
    assert message_of(error) == "no cluster is configured (asyncjob explain no-cluster)"


def test_a_refusal_by_a_rule_is_explained_by_the_rule() -> None:
    refused = ForbiddenError("... denied request: The status of ... (owner.holder)", status=403)
    assert code_of(refused) == "owner.holder"
    assert code_of(ForbiddenError('User "x" cannot list resource')) == "forbidden"
    assert code_of(NoClusterError("not reached (api.example)")) == "no-cluster"
