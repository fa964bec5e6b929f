"""Steps and waits that are to be changed, removed or made up, and parks that say too little."""

from collections.abc import Callable
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer, Client
from support.driven.lives import (
    LEFT_OUT,
    Decide,
    crashed,
    dropped,
    failed,
    parked,
    promoted,
    released,
    succeeded,
    woken,
)
from support.forbidden.case import (
    Case,
    ForbiddenSetup,
    claim,
    operator_report,
    outcome,
    report,
)
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


WAITS: Final = "running.waits"
WAITING: Final = "parked.waiting"

ENDS: Final[dict[str, Any]] = {"cooling-off": {"kind": "Sleep", "until": at(60)}}
SOONER: Final[dict[str, Any]] = {"cooling-off": {"kind": "Sleep", "until": at(10)}}
OTHERS: Final[dict[str, Any]] = {**ENDS, "nap": {"kind": "Sleep", "until": at(30)}}
NAMED: Final = [{"kind": "Sleep", "key": "cooling-off", "until": at(60)}]


def _of_a_wait(title: str, *operations: dict[str, Any]) -> Case:
    """Return a write by the holder of a running job that has noted the end of a wait."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        added = [{"op": "add", "path": "/status/waits", "value": ENDS}]
        setup.worker.client.patch(life.status_path, added).object()
        return setup.acting(setup.worker.client).patch(life.status_path, list(operations))

    return Case(WAITS, title, attempt)


def _parked_sooner(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    added = [{"op": "add", "path": "/status/waits", "value": ENDS}]
    setup.worker.client.patch(life.status_path, added).object()
    return life.move(parked, setup.acting(setup.worker.client), waits=SOONER)


def _of_a_parked(rule: str, title: str, decide: Decide, **changes: Any) -> Case:
    """Return a change of phase of a parked job by the operator, with some fields changed."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        life.move(parked, setup.worker.client).object()
        if decide is dropped:
            life.change_spec(cancel=True).object()
        return life.move(decide, setup.acting(setup.operator), **changes)

    return Case(rule, title, attempt)


def _woken_from_no_wait(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.SCHEDULED, notBefore=at())
    return life.move(promoted, setup.acting(setup.operator), reason="WaitOver")


def _report_of_a_parked(rule: str, title: str, **changes: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        life.move(parked, setup.worker.client).object()
        return setup.acting(setup.operator).merge(life.status_path, {"status": changes})

    return Case(rule, title, attempt)


PARKS: Final = [
    _of_a_wait(
        "a wait that ends sooner",
        {"op": "replace", "path": "/status/waits/cooling-off/until", "value": at(10)},
    ),
    _of_a_wait("a wait that is removed", {"op": "remove", "path": "/status/waits/cooling-off"}),
    _of_a_wait("all waits removed", {"op": "remove", "path": "/status/waits"}),
    Case(WAITS, "a park with a wait that ends sooner", _parked_sooner),
    claim(WAITS, "a claim that comes with a wait", waits=ENDS),
    outcome(WAITS, "success that comes with a wait", succeeded, waits=ENDS),
    operator_report(WAITS, "a wait of a waiting job", Phase.PENDING, waits=ENDS),
    _report_of_a_parked(WAITS, "a wait of a parked job that ends sooner", waits=SOONER),
    _of_a_parked(WAITS, "a parked job woken without its waits", woken, waits=None),
    _of_a_parked(WAITS, "a parked job woken with another wait", woken, waits=OTHERS),
    _of_a_parked(WAITS, "a parked job woken with a wait moved", woken, waits=SOONER),
    _of_a_parked(WAITS, "a parked job cancelled with a wait moved", dropped, waits=SOONER),
    outcome(WAITING, "a park that does not say for what", parked, waiting=LEFT_OUT),
    outcome(WAITING, "a failure that says what it waits for", failed, waiting=NAMED),
    claim(WAITING, "a claim that says what it waits for", waiting=NAMED),
    report(WAITING, "a running job that says what it waits for", waiting=NAMED),
    operator_report(WAITING, "a queued job said to be parked", Phase.QUEUED, waiting=NAMED),
    _report_of_a_parked(WAITING, "a parked job that no longer says for what", waiting=None),
    _of_a_parked(WAITING, "a parked job woken and still parked", woken, waiting=LEFT_OUT),
    _of_a_parked(WAITING, "a parked job cancelled and still parked", dropped, waiting=LEFT_OUT),
    _of_a_parked(
        WAITING, "a parked job woken for its start time", woken, reason="StartTimeReached"
    ),
    Case(WAITING, "a scheduled job woken from no wait", _woken_from_no_wait),
    outcome("budget.parks", "a park that counts as two", parked, parks=2),
    outcome("budget.parks", "success that counts as a park", succeeded, parks=1),
    outcome("budget.parks", "a release that counts as a park", released, parks=1),
    outcome("budget.retries", "a park that costs a retry", parked, retries=1),
    outcome("budget.releases", "a park that counts as a release", parked, releases=1),
    outcome("budget.park-counted", "a park that is not counted", parked, parks=LEFT_OUT),
    outcome("transition.reason", "a park for the start time", parked, reason="NotBefore"),
    outcome("lease.iff-running", "a park that keeps the lease", parked, lease=LEFT_OUT),
    outcome(
        "history.grows",
        "a park with a line of history",
        parked,
        history=[{"time": at(9), "phase": "Scheduled"}],
    ),
    outcome("running.steps", "a park that comes with a step", parked, steps={"charge": RECORD}),
    _of_a_parked(
        "history.grows",
        "a parked job woken with a line of history",
        woken,
        history=[{"time": at(70), "phase": "Queued"}],
    ),
]
"""The holder's parks, and what the operator makes of them."""
