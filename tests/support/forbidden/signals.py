"""Signals that nobody may send, and what who sends them may not do besides."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, collection_path
from support.cluster.api import Answer, Client
from support.cluster.identities import OPERATOR_ACCOUNT, Space
from support.driven.lives import LEFT_OUT, Decide, Life, promoted, waiting_for_approval
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import at, cron_job, job

Sent = dict[str, Any]

APPROVAL: Final = "/spec/signals/approval"
SIGNALLER: Final = "asyncjob-job-signaller"
ADMIN: Final = "asyncjob-job-admin"
ENDS: Final[Sent] = {"approval": {"kind": "Signal", "until": at(60)}}
OVER: Final[Sent] = {"approval": {**ENDS["approval"], "over": True}}
NAP: Final[Sent] = {"nap": {"kind": "Sleep", "until": at(60)}}


@cache
def account(space: Space, role: str) -> tuple[Client, str]:
    """Return an account with one role in the namespace, and what the API server calls it."""
    name = f"{role}-{next(NUMBERS)}"
    space.account(name)
    space.bind(name, role)
    return space.as_account(name), user_name(space, name)


def user_name(space: Space, account: str) -> str:
    """Return what the API server calls a ServiceAccount."""
    return f"system:serviceaccount:{space.name}:{account}"


def signal(by: str, payload: Any = True) -> Sent:
    """Return an entry of `spec.signals`."""
    return {"payload": payload, "sentBy": by}


def answered(view: JobView) -> PhaseChange:
    """Decide to queue a parked job whose signal has come."""
    return phase_change.promote(view, now=at(20))


def timed_out(view: JobView) -> PhaseChange:
    """Decide to queue a parked job whose signal has not come in time."""
    return phase_change.promote(view, now=at(70), waits_over=("approval",))


def send(life: Life, who: Client, name: str, entry: Sent) -> Answer:
    """Send a signal."""
    return who.merge(life.path, {"spec": {"signals": {name: entry}}})


def waiting(setup: ForbiddenSetup) -> Life:
    """Return a job that waits for a signal without a slot."""
    life = setup.life(Phase.RUNNING)
    life.move(waiting_for_approval, setup.worker.client).object()
    return life


def _sent(rule: str, title: str, signals: Sent, phase: Phase = Phase.QUEUED) -> Case:
    """Return a write of signals by who may do everything."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase)
        admin = setup.acting(setup.space.admin)
        return admin.merge(life.path, {"spec": {"signals": signals}})

    return Case(rule, title, attempt)


def _again(title: str, *operations: dict[str, Any]) -> Case:
    """Return a write to a job that has been sent a signal."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life()
        send(life, setup.space.admin, "approval", signal("ada")).object()
        return setup.acting(setup.space.admin).patch(life.path, list(operations))

    return Case("signal.once", title, attempt)


def _too_late(setup: ForbiddenSetup) -> Answer:
    life = waiting(setup)
    life.move(timed_out, setup.operator).object()
    return send(life, setup.acting(setup.space.admin), "approval", signal("ada"))


def _marked_too_early(setup: ForbiddenSetup) -> Answer:
    life = waiting(setup)
    send(life, setup.space.admin, "approval", signal("ada")).object()
    return life.move(timed_out, setup.acting(setup.operator))


def _marked_while_it_runs(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    send(life, setup.space.admin, "approval", signal("ada")).object()
    marked = [{"op": "add", "path": "/status/waits", "value": OVER}]
    return setup.acting(setup.worker.client).patch(life.status_path, marked)


def _unmarked(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    client = setup.worker.client
    client.patch(life.status_path, [{"op": "add", "path": "/status/waits", "value": OVER}]).object()
    undone = [{"op": "remove", "path": "/status/waits/approval/over"}]
    return setup.acting(client).patch(life.status_path, undone)


def _redriven(title: str, **changes: Any) -> Case:
    """Return a redrive of a job that sleeps and waits, with some fields changed."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        added = [{"op": "add", "path": "/status/waits", "value": {**OVER, **NAP}}]
        setup.worker.client.patch(life.status_path, added).object()
        life.move(given_up, setup.worker.client).object()
        life.change_spec(redrive=1).object()
        return life.move(redriven, setup.acting(setup.operator), **changes)

    return Case("running.waits", title, attempt)


def given_up(view: JobView) -> PhaseChange:
    """Decide for a failure that is no use to retry."""
    failure = phase_change.Failure("Fail", "Internal", "no", permanent=True)
    return phase_change.fail(view, failure, now=at(9), jitter_sample=0.5)


def redriven(view: JobView) -> PhaseChange:
    """Decide to run a dead letter again."""
    return phase_change.redrive(view, now=at(20))


def _by(rule: str, title: str, role: str, entry: Callable[[str], Sent], **spec: Any) -> Case:
    """Return a write by an account with one role, `entry` by its name being what it sends."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life, (who, name) = setup.life(), account(setup.space, role)
        changes = {"signals": {"approval": entry(name)}} if entry is not nothing else {}
        return setup.acting(who).merge(life.path, {"spec": {**changes, **spec}})

    return Case(rule, title, attempt)


def nothing(_: str) -> Sent:
    """Send none."""
    return {}


def _operated(setup: ForbiddenSetup) -> Answer:
    entry = signal(user_name(setup.space, OPERATOR_ACCOUNT))
    return send(setup.life(), setup.acting(setup.operator), "approval", entry)


def _labelled(setup: ForbiddenSetup) -> Answer:
    who, _ = account(setup.space, SIGNALLER)
    return setup.acting(who).merge(setup.life().path, {"metadata": {"labels": {"team": "mine"}}})


def _created(title: str, body: Callable[[str], Sent], plural: str = JOBS) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, plural)
        return setup.acting(setup.space.admin).create(path, body(f"case-{next(NUMBERS)}"))

    return Case("signal.not-at-creation", title, attempt)


def _parked_otherwise(rule: str, title: str, decide: Decide, **changes: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        return life.move(decide, setup.acting(setup.worker.client), **changes)

    return Case(rule, title, attempt)


def _woken_for_a_gate(setup: ForbiddenSetup) -> Answer:
    return waiting(setup).move(answered, setup.acting(setup.operator), reason="GateOpened")


def _woken_from_no_wait(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.PENDING)
    return life.move(promoted, setup.acting(setup.operator), reason="WaitOver")


def _said_to_wait_for_a_signal(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.PENDING)
    said = {"status": {"reason": "WaitingForSignal"}}
    return setup.acting(setup.operator).merge(life.status_path, said)


def _said_to_be_suspended(setup: ForbiddenSetup) -> Answer:
    said = {"status": {"reason": "Suspended"}}
    return setup.acting(setup.operator).merge(waiting(setup).status_path, said)


def _parked_by_the_operator(setup: ForbiddenSetup) -> Answer:
    return setup.life(Phase.RUNNING).move(waiting_for_approval, setup.acting(setup.operator))


SENT: Final = {"approval": signal("ada")}

SIGNALS: Final = [
    _again(
        "a signal changed", {"op": "replace", "path": "/spec/signals/approval/payload", "value": 0}
    ),
    _again(
        "a signal of another",
        {"op": "replace", "path": "/spec/signals/approval/sentBy", "value": "b"},
    ),
    _again("a signal removed", {"op": "remove", "path": APPROVAL}),
    _again("all signals removed", {"op": "remove", "path": "/spec/signals"}),
    _sent("signal.unfinished", "a signal to a job that succeeded", SENT, Phase.SUCCEEDED),
    _sent("signal.unfinished", "a signal to a dead letter", SENT, Phase.DEAD_LETTER),
    Case("signal.in-time", "a signal that the handler no longer waits for", _too_late),
    Case("signal.timeout", "a park that times out although it is answered", _marked_too_early),
    Case("signal.timeout", "a timeout of a running job that is answered", _marked_while_it_runs),
    Case("running.waits", "a timeout taken back", _unmarked),
    _redriven("a redrive that keeps nothing of a sleep", waits=None),
    _redriven("a redrive with another wait", waits={**NAP, "more": NAP["nap"]}),
    _sent("signal.name", "a signal with a space in its name", {"no name": signal("ada")}),
    _sent("signal.name", "a signal with a long name", {"x" * 64: signal("ada")}),
    _by("signal.right", "a signal of who may control", ADMIN, signal),
    Case("signal.right", "a signal of who may operate", _operated),
    _by("signal.sender", "a signal in another's name", SIGNALLER, lambda _: signal("ada")),
    _by("signal.alone", "a cancel by who may signal", SIGNALLER, nothing, cancel=True),
    _by("signal.alone", "a signal with a cancel", SIGNALLER, signal, cancel=True),
    Case("signal.alone", "a label by who may signal", _labelled),
    _created("a job created with a signal", lambda name: job(name, signals=SENT)),
    _created("a cron job of signals", lambda name: cron_job(name, signals=SENT), CRON_JOBS),
    _parked_otherwise(
        "budget.park-counted", "a wait that is not counted", waiting_for_approval, parks=LEFT_OUT
    ),
    _parked_otherwise(
        "transition.reason", "a park for a gate", waiting_for_approval, reason="Suspended"
    ),
    _parked_otherwise(
        "parked.waiting", "a wait for nothing", waiting_for_approval, waiting=LEFT_OUT
    ),
    Case("parked.waiting", "a job that waits woken for a gate", _woken_for_a_gate),
    Case("parked.waiting", "a suspended job woken from no wait", _woken_from_no_wait),
    Case("transition.reason", "a suspended job said to wait", _said_to_wait_for_a_signal),
    Case("transition.reason", "a job that waits said to be suspended", _said_to_be_suspended),
    Case("owner.transition", "a wait by the operator", _parked_by_the_operator),
]
"""Users', the holder's and the operator's."""
