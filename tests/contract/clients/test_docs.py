"""The examples of the pages on clients: all of them, in order, as a reader would run them."""

import re
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.supervisor import DevWorker
from contract.clients.full_stack import FullStack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DOCS = Path(__file__).parents[3] / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def postman(full_stack: FullStack, monkeypatch: pytest.MonkeyPatch) -> DevWorker:
    monkeypatch.setenv("ASYNCJOB_SERVER", full_stack.gateway.url)
    monkeypatch.setenv("ASYNCJOB_TOKEN", full_stack.token)
    monkeypatch.setenv("KUBECONFIG", str(full_stack.kubeconfig))
    options = ("--queue=mail", "--concurrency=8")
    return full_stack.ns.worker("postman", *options, app="support.apps.client_docs:app")


def test_the_examples_run(postman: DevWorker, capsys: pytest.CaptureFixture[str]) -> None:
    for page, (examples, expected) in PAGES.items():
        text = (DOCS / page).read_text()
        found = list(PYTHON.finditer(text))
        assert len(found) == examples
        names: dict[str, Any] = {}
        for example in found:
            line = text[: example.start()].count("\n") + 1
            exec(compile("\n" * line + example[1], page, "exec"), names)
        said = capsys.readouterr().out.splitlines()
        for wanted in expected:
            assert any(re.fullmatch(wanted, line) for line in said), (wanted, said)
        if "jobs" in names:
            names["jobs"].close()


PAGES = {
    "how-to/use-the-client.md": (
        10,
        [
            "Succeeded sent",
            "Succeeded 100 .*",
            "already under way: .*-999999999",
            "1 attempts, 0 of 0 retries",
            ".* no such address",
            r"would redrive \['.*'\]",
            "runs again as .*-r1",
            "Succeeded",
        ],
    ),
    "explanation/submitting-once.md": (1, ["[0-9a-f-]{36}"]),
}
