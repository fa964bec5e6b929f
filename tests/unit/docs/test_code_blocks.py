"""Every code block of the documentation says its language, and is right by what that language has.

Commands are held against the programs' options, YAML against the schemas of the CRDs and of the
chart; Python is compiled and finds what it imports. That blocks do what their pages say is tested
where the programs are: `RUN_BY` names those tests, `NOT_RUN` the pages whose Python no test runs.
"""

import ast
import importlib
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import create_autospec

import pytest
import yaml

import asyncjob
from asyncjob.names import GROUP, collection_path
from support.docs.blocks import ROOT, CodeBlock, all_blocks, blocks_in, commands_of
from support.docs.commands import complaints as of_command
from support.docs.manifests import complaints as of_manifest
from support.docs.manifests import container_commands, documents_of
from support.in_memory.memory import memory_admin, memory_server

OURS = ("asyncjob", "asyncjob_worker", "asyncjob_operator", "asyncjob_gateway", "asyncjob_dev")
TYPED = re.compile(
    r"^(?:\$ )?((?:asyncjob(?:-\w+)?|kubectl|make|helm|pip|curl|docker) .+)$", re.MULTILINE
)
"""A command in a block of text, such as the examples of errors."""

USAGE = re.compile(r"\[(OPTIONS|options)\]")

RUN_BY: Mapping[str, str] = {
    "docs/reference/handlers.md": "tests/unit/docs/test_pages.py",
    "docs/how-to/share-resources.md": "tests/unit/docs/test_pages.py",
    "docs/how-to/fan-out.md": "tests/unit/docs/test_pages.py",
    "docs/how-to/take-steps.md": "tests/unit/docs/test_steps_page.py",
    "docs/explanation/coming-from/dbos.md": "tests/unit/docs/test_coming_from_pages.py",
    "docs/explanation/coming-from/temporal.md": "tests/unit/docs/test_coming_from_pages.py",
    "docs/how-to/test-handlers.md": "tests/unit/testing/test_docs.py",
    "docs/how-to/use-the-client.md": "tests/contract/clients/test_docs.py",
    "docs/explanation/submitting-once.md": "tests/contract/clients/test_docs.py",
}
"""Pages whose Python other tests run, and which ones."""

NOT_RUN: Mapping[str, str] = {
    "docs/explanation/proof.md": "an excerpt, whose lines are in the proofs",
    "docs/how-to/large-payloads-and-results.md": "takes an S3 store, which integration tests have",
}
"""Pages whose Python is not run, and why."""

EXCERPTS: Mapping[str, str] = {
    "docs/explanation/proof.md": "dev/asyncjob_dev/proofs",
}
"""Pages whose Python is cut out of files of a folder."""

WITH_A_STAND_IN: Mapping[str, str] = {
    "sdk/README.md": "JobsClient",
    "docs/how-to/many-items.md": "JobsClient",
}
"""Pages whose Python is run with something in the place of a class that has the same methods."""

WRONG_ON_PURPOSE: Mapping[tuple[str, str], str] = {
    ("docs/reference/errors/problems.md", """-d '{"jobType": NaN}'"""): "type 'string'",
    ("docs/reference/errors/problems.md", "curl -X PUT $GATEWAY/api/v1/jobs/report-42"): "no PUT",
}
"""Parts of commands that show what is refused, and why it is."""

OTHER_YAML: Mapping[tuple[str, str], str] = {
    ("docs/how-to/build-your-image.md", "securityContext:"): "fields of a container",
    ("docs/how-to/gitops.md", "resource.customizations.health.asyncjob.dev_AsyncJob: |"): (
        "a key of Argo CD's configuration, with Lua"
    ),
    ("docs/how-to/large-payloads-and-results.md", "rules:"): "rules of a Role",
    ("docs/how-to/monitor.md", "scrape_configs:"): (
        "Prometheus's configuration, which promtool checks in tests/integration/monitoring"
    ),
    ("docs/how-to/monitor.md", "env:"): "a field of a container",
    ("docs/recipes/approval.md", "- expression: >-"): "lines of an admission policy that runs",
}
"""YAML that is neither a manifest nor values of the chart, and what it is. A real API server takes
parts of manifests, made whole, in tests/integration/schema."""


def blocks(*languages: str) -> list[CodeBlock]:
    found = [block for block in all_blocks() if block.language in languages]
    assert found, languages
    return found


def python_pages() -> list[str]:
    return list(dict.fromkeys(block.page for block in blocks("python")))


def test_every_block_says_a_language_that_is_checked() -> None:
    checked = {
        *("console", "sh", "text", "python", "yaml", "json", "dockerfile", "sql"),
    }
    assert [str(one) for one in all_blocks() if one.language not in checked] == []
    assert len(all_blocks()) > 400


@pytest.mark.parametrize("block", blocks("console", "sh"), ids=str)
def test_commands_are_ones_that_a_shell_and_our_programs_take(block: CodeBlock) -> None:
    script = block.text
    if block.language == "console":
        script = "\n".join(
            "\n".join([one.text, *(f"{text}{end(one.text)}" for text in one.documents)])
            for one in commands_of(block)
        )
    assert script.strip()
    parsed = subprocess.run(
        ["bash", "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert parsed.stderr == ""
    commands = commands_of(block)
    assert [one for command in commands for one in of_command(command.text)] == []
    documents = [text for command in commands for text in command.documents]
    assert [one for text in documents for one in wrong_yaml(text)] == []


def end(command: str) -> str:
    """Return the last line of a command's here document."""
    found = re.search(r"<<-?\s*['\"]?(\w+)", command)
    assert found
    return found[1]


@pytest.mark.parametrize(
    "block", [one for one in blocks("text") if TYPED.search(one.text)], ids=str
)
def test_commands_among_other_text_are_ones_that_our_programs_take(block: CodeBlock) -> None:
    found = [line for line in TYPED.findall(block.text) if not USAGE.search(line)]
    for line in found:
        wrong = [
            why
            for (page, part), why in WRONG_ON_PURPOSE.items()
            if block.page == page and part in line
        ]
        complaints = list(of_command(line))
        assert len(complaints) == len(wrong), complaints
        assert [why for why, said in zip(wrong, complaints, strict=True) if why not in said] == []


def wrong_yaml(text: str) -> list[str]:
    return [
        complaint
        for document in yaml.safe_load_all(text)
        for complaint in [
            *of_manifest(document),
            *(one for line in container_commands(document) for one in of_command(line)),
        ]
    ]


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_fits_the_schema_of_what_it_is_for(block: CodeBlock) -> None:
    if (block.page, block.first) in OTHER_YAML:
        assert list(yaml.safe_load_all(block.text))
    else:
        assert wrong_yaml(block.text) == []


def manifests_of_ours() -> list[tuple[CodeBlock, Any]]:
    """Return what a reader creates with them."""
    return [
        (block, one)
        for block in all_blocks()
        for one in documents_of(block)
        if isinstance(one, dict) and str(one.get("apiVersion")).startswith(f"{GROUP}/")
    ]


@pytest.mark.parametrize(("block", "manifest"), manifests_of_ours(), ids=lambda one: str(one)[:50])
def test_a_manifest_passes_the_rules_and_policies_too(block: CodeBlock, manifest: Any) -> None:
    plural = f"{manifest['kind'].lower()}s"
    admin = memory_admin(memory_server())
    answer = admin.create(collection_path("default", plural), manifest)
    assert answer.accepted, f"{block}: {answer.message}"


def test_every_exception_is_still_needed() -> None:
    there = {(block.page, block.first) for block in all_blocks()}
    assert set(OTHER_YAML) <= there
    assert {*RUN_BY, *NOT_RUN, *WITH_A_STAND_IN} <= set(python_pages())
    texts = [(block.page, block.text) for block in all_blocks()]
    for page, part in WRONG_ON_PURPOSE:
        assert any(page == one and part in text for one, text in texts), part


def whole_python() -> list[CodeBlock]:
    """Return what is no excerpt; of the lines of recipes another test knows where they are from."""
    excerpts = ("docs/recipes/", *EXCERPTS)
    return [block for block in blocks("python") if not block.page.startswith(excerpts)]


@pytest.mark.parametrize("block", whole_python(), ids=str)
def test_python_is_compiled_and_finds_what_it_imports(block: CodeBlock) -> None:
    tree = ast.parse(block.text)
    compile(tree, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for module, name in imported(tree):
        there = importlib.import_module(module)
        if name and not hasattr(there, name):
            importlib.import_module(f"{module}.{name}")


def imported(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield what is imported of the project: modules, and names of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for one in node.names:
                    if one.name.partition(".")[0] in OURS:
                        yield one.name, None
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in OURS:
                for one in node.names:
                    yield module, one.name


@pytest.mark.parametrize("page", python_pages())
def test_python_is_run_by_a_test_or_its_page_says_why_not(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.startswith("docs/recipes/") or page in NOT_RUN:
        return  # a recipe shows lines of files that run, which a test of its own looks at
    if page in RUN_BY:
        text = (ROOT / RUN_BY[page]).read_text(encoding="utf-8")
        assert page.removeprefix("docs/") in text or page.rpartition("/")[2] in text
        return
    stand_in = None
    if page in WITH_A_STAND_IN:
        name = WITH_A_STAND_IN[page]
        stand_in = create_autospec(getattr(asyncjob, name))
        monkeypatch.setattr(asyncjob, name, stand_in)
    names: dict[str, object] = {"__name__": f"page_{abs(hash(page))}"}
    for block in blocks("python"):
        if block.page == page:
            exec(compile(block.text, str(block), "exec"), names)
    assert stand_in is None or stand_in.called


@pytest.mark.parametrize(("page", "folder"), EXCERPTS.items())
def test_an_excerpt_has_the_lines_of_its_file(page: str, folder: str) -> None:
    source = {
        line.strip()
        for file in (ROOT / folder).rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
    }
    shown = [one for block in blocks("python") if block.page == page for one in lines(block)]
    assert [line for line in shown if line not in source] == []


def lines(block: CodeBlock) -> list[str]:
    return [line.strip() for line in block.text.splitlines() if line.strip()]


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_can_be_read(block: CodeBlock) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", blocks("dockerfile"), ids=str)
def test_a_dockerfile_has_instructions_that_there_are(block: CodeBlock) -> None:
    assert block.text.startswith("FROM ")
    for line in lines(block):
        assert re.match(r"(FROM|COPY|RUN|ENV|USER|WORKDIR|ENTRYPOINT|CMD) \S", line)


@pytest.mark.parametrize("block", blocks("sql"), ids=str)
def test_sql_is_carried_out(block: CodeBlock) -> None:
    with sqlite3.connect(":memory:", isolation_level=None) as database:
        database.execute("CREATE TABLE done (job TEXT PRIMARY KEY)")
        database.execute("CREATE TABLE accounts (id TEXT, balance INTEGER)")
        for statement in re.sub(r"--.*", "", block.text).split(";"):
            database.execute(statement, {"job": "1", "account": "a"})
        assert database.execute("SELECT count(*) FROM done").fetchone() == (1,)


def test_bash_is_there_to_ask() -> None:
    assert shutil.which("bash")


PAGE = """
- text

    ```console
    $ asyncjob get a \\
        --wat
    said
    ```
"""


def test_a_block_inside_of_a_list_is_read_as_a_reader_sees_it() -> None:
    [block] = blocks_in("page.md", PAGE)
    assert (block.language, block.line) == ("console", 4)
    [command] = commands_of(block)
    assert command.text == "asyncjob get a \\\n    --wat"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("asyncjob get a --wat", "No such option '--wat'."),
        ("asyncjob gte a", "asyncjob has no command gte"),
        ("kubectl asyncjob submit", None),
        ("a=b asyncjob wait | xargs -n1 asyncjob get", "JOB... is missing"),
        ("asyncjob completion tcsh", "'tcsh' is not one of"),
        ("make demoo", "make has no target demoo"),
        ("make bench SCALES=small", "make bench takes no SCALES"),
        (".venv/bin/python -m examples.nothing", "there is no module examples.nothing"),
        ("asyncjob-wroker run", "there is no program asyncjob-wroker"),
        ("kubectl get ajs", "there is no kind ajs"),
        ("kubectl gte aj", "kubectl has no gte"),
        ("kubectl get aj --field-selector status.reason=x", "status.reason cannot be selected by"),
        ("kubectl get aj -o jsonpath='{.status.reasons}'", "there is no status.reasons"),
        ("""kubectl patch aj a -p '{"spec":{"redrives":1}}'""", "there is no spec.redrives"),
        ("helm upgrade a charts/asyncjob --set gateway.ingres=1", "'ingres' was unexpected"),
        ("kubectl apply -f examples/nothing.yaml", "examples/nothing.yaml is not there"),
        ("jqq . backup.jsonl", "there is no program jqq"),
        ("pip install 'asyncjob-sdk[kubernets]'", "asyncjob-sdk has no extra kubernets"),
        ("pip install asyncjob-skd", "nobody knows asyncjob-skd"),
        ("curl localhost:8080/job", "the gateway has no GET /job"),
        ("curl 'localhost:8080/api/v1/jobs?typ=a'", "/api/v1/jobs takes no typ"),
        ("""curl $GATEWAY/jobs -d '{"jobTyp": "a"}'""", "'jobType' is a required property"),
        ("curl localhost:81/", "nobody knows what answers at localhost:81"),
        ("docker build --file operator/Dockerfile --build-arg BASIS=a .", "no argument BASIS"),
        ("kopf run --standalon -m a", "No such option '--standalon'"),
    ],
)
def test_a_wrong_command_is_found(command: str, complaint: str | None) -> None:
    found = list(of_command(command))
    assert (complaint or "") in "".join(found)
    assert bool(found) is bool(complaint)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("spec: {type: a, quue: b}", "there is no spec.quue"),
        ("spec: {type: 1}", "$.spec.type: 1 is not of type 'string'"),
        ("spec: {schedule: x, jobTemplate: {spec: {priorty: 1}}}", "spec.jobTemplate.spec.priorty"),
        ("{apiVersion: asyncjob.dev/v1alpha1, kind: AsyncJob, spec: {}}", "'type' is a required"),
        ("{apiVersion: asyncjob.dev/v1alpha1, kind: AsyncJb}", "there is no kind AsyncJb"),
        ("gateway: {ingres: {}}", "'ingres' was unexpected"),
        ("something: else", "nobody knows what it is for"),
    ],
)
def test_wrong_yaml_is_found(text: str, complaint: str) -> None:
    assert any(complaint in one for one in wrong_yaml(text)), wrong_yaml(text)
