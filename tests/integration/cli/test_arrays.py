"""The commands about arrays on a real API server, with a worker that runs item handlers."""

import json
from collections.abc import Callable

import pytest

from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

Say = Callable[..., str]
QUEUE = "--queue=items"


@pytest.fixture
def items(ns: WorkerNamespace) -> WorkerNamespace:
    ns.worker("worker-items", "--queue=items", "--concurrency=4", app="support.apps.items:app")
    return ns


def test_an_array_is_submitted_waited_for_looked_into_and_redriven(
    say: Say, items: WorkerNamespace
) -> None:
    file, failing = items.folder / "items.jsonl", items.folder / "failing"
    file.write_text("\n".join(str(number) for number in range(40)))
    failing.write_text("7 30")
    chunks = ("--chunk-size=10", QUEUE)
    said = say("array", "submit", "picky", "-f", str(file), "--name=p", *chunks, "--wait", code=4)
    assert "p Failed 100% of 40 items, 2 failed" in said
    assert "asyncjob array items p --failed shows what failed" in said
    assert say("array", "items", "p", "--failed", "-oname") == "7\n30\n"
    assert "item 30 is wrong" in say("array", "items", "p", "--failed")
    assert "asyncjob array redrive p" in say("array", "get", "p")
    states = json.loads(say("array", "items", "p", "-o", "json"))["items"]
    assert states[0] == {"state": "succeeded", "count": 38, "items": "0-6,8-29,31-39"}
    failing.write_text("")
    assert "p Succeeded 100% of 40 items" in say("array", "redrive", "p", "--wait")
    assert "only a failed array can be redriven" in say("array", "redrive", "p", code=9)
    assert "has succeeded" in say("array", "cancel", "p", code=9)

    again = ("array", "submit", "note", "--count=50", "--name=n", "--suspend", QUEUE)
    assert say(*again) == "array n created\n"
    assert say(*again) == "array n exists (Pending)\n"
    assert "another array is called n" in say(
        "array", "submit", "note", "--count=9", "--name=n", code=9
    )
    assert say("array", "list", "--phase=Pending", "-oname") == "n\n"
    assert say("array", "resume", "n") == "array n resumed\n"
    assert "n Succeeded 100% of 50 items" in say("array", "wait", "n")
    rows = [line.split()[:3] for line in say("array", "list", "-A").splitlines()]
    assert [*rows[1:]] == [[items.namespace, "n", "Succeeded"], [items.namespace, "p", "Succeeded"]]

    say("array", "submit", "gated", "--count=4", "--name=g", QUEUE, "--cancel-grace=1")
    assert say("array", "suspend", "g") == "array g suspended\n"
    assert "Cancelled" in say("array", "cancel", "g", "--wait")
    assert "there is no array gone" in say("array", "get", "gone", code=3)
