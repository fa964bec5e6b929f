"""Steps that are done and are to be changed, removed or made up."""

from collections.abc import Callable
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer, Client
from support.driven.lives import crashed, succeeded
from support.forbidden.case import Case, ForbiddenSetup, claim, operator_report
from support.objects.builders import at

RULE: Final = "running.steps"

RECORD: Final[dict[str, Any]] = {
    "startTime": at(1),
    "completionTime": at(2),
    "attempt": 1,
    "sizeBytes": 14,
    "result": {"cmd": "rm -r"},
}
SWAPPED: Final = {**RECORD, "result": {"cmd2": "rm -r"}}
"""Of equal size, with another key: what CEL in a CRD takes for the same."""

Operations = list[dict[str, Any]]


def _of_a_done_step(title: str, *operations: dict[str, Any], by_operator: bool = False) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        added = [{"op": "add", "path": "/status/steps", "value": {"charge": RECORD}}]
        setup.worker.client.patch(life.status_path, added).object()
        who = setup.operator if by_operator else setup.worker.client
        return setup.acting(who).patch(life.status_path, list(operations))

    return Case(RULE, title, attempt)


def _with_the_end(title: str, steps: Any, who: Callable[[ForbiddenSetup], Client]) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        added = [{"op": "add", "path": "/status/steps", "value": {"charge": RECORD}}]
        setup.worker.client.patch(life.status_path, added).object()
        writer = who(setup)
        decide = succeeded if writer is setup.worker.client else crashed
        return life.move(decide, setup.acting(writer), steps=steps)

    return Case(RULE, title, attempt)


STEPS: Final = [
    _of_a_done_step(
        "a step with another result",
        {"op": "replace", "path": "/status/steps/charge", "value": SWAPPED},
    ),
    _of_a_done_step("a step that is removed", {"op": "remove", "path": "/status/steps/charge"}),
    _of_a_done_step("all steps removed", {"op": "remove", "path": "/status/steps"}),
    _of_a_done_step(
        "a step renamed",
        {"op": "move", "from": "/status/steps/charge", "path": "/status/steps/ship"},
    ),
    _with_the_end("a step removed with success", None, lambda setup: setup.worker.client),
    _with_the_end(
        "a step added with success",
        {"charge": RECORD, "ship": RECORD},
        lambda setup: setup.worker.client,
    ),
    _with_the_end("a step removed by the operator", None, lambda setup: setup.operator),
    operator_report(RULE, "a step of a waiting job", Phase.PENDING, steps={"charge": RECORD}),
    operator_report(RULE, "a step of a dead letter", Phase.DEAD_LETTER, steps={"charge": RECORD}),
    claim(RULE, "a claim that comes with a step", steps={"charge": RECORD}),
]
