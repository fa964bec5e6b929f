"""Jobs that are not the worker's own."""

from collections.abc import Callable
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer, Client
from support.cluster.identities import OPERATOR_ACCOUNT, WORKER_ACCOUNT
from support.driven.lives import (
    Decide,
    cancelled,
    crashed,
    dropped,
    evicted,
    failed,
    given_up,
    overran,
    parked,
    promoted,
    redriven,
    refused,
    released,
    succeeded,
)
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.forbidden.steps import RECORD
from support.objects.builders import at, claim_of

HOLDER: Final = "owner.holder"
TRANSITION: Final = "owner.transition"
RUNNING: Final = "owner.running"


def _by_the_operator(phase: Phase, decide: Decide, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase, **spec)
        return life.move(decide, setup.acting(setup.operator))

    return Case(
        TRANSITION, f"an operator that takes a holder's transition: {decide.__name__}", attempt
    )


def _claimed_by_the_operator(setup: ForbiddenSetup) -> Answer:
    return _claims(setup, setup.worker.pod, setup.worker.pod_uid, setup.operator)


def _in_the_operators_own_name(setup: ForbiddenSetup) -> Answer:
    """Claim by a pod of the operator, which has a name and a UID as well."""
    pod = setup.space.worker(f"operator-{next(NUMBERS)}", OPERATOR_ACCOUNT)
    return _claims(setup, pod.pod, pod.pod_uid, pod.client)


def _claimed_by_an_administrator(setup: ForbiddenSetup) -> Answer:
    return _claims(setup, setup.worker.pod, setup.worker.pod_uid, setup.space.admin)


def _succeeded_by_an_administrator(setup: ForbiddenSetup) -> Answer:
    return setup.life(Phase.RUNNING).move(succeeded, setup.acting(setup.space.admin))


def _ended_by_its_holder(decide: Decide) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        return life.move(decide, setup.acting(setup.worker.client))

    return Case(
        TRANSITION, f"a holder that takes an operator's transition: {decide.__name__}", attempt
    )


def _written_while_running(title: str, **changes: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        body = {"status": changes}
        return setup.acting(setup.operator).merge(life.status_path, body)

    return Case(RUNNING, f"an operator that writes {title} of a running job", attempt)


def _written_with_a_rerun(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    life.change_spec(rerun=1).object()
    body = {"status": {"reruns": 1, "lease": {"renewals": 1}}}
    return setup.acting(setup.operator).merge(life.status_path, body)


def _taken_away_while_running(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    told = {"status": {"progress": {"percent": 5}}}
    setup.worker.client.merge(life.status_path, told).object()
    body = {"status": {"progress": None}}
    return setup.acting(setup.operator).merge(life.status_path, body)


def _taken_away_with(title: str, decide: Decide, **changes: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        if decide is cancelled:
            life.change_spec(cancel=True).object()
        told = {"status": {"checkpoint": {"row": 3}, "progress": {"percent": 5}}}
        setup.worker.client.merge(life.status_path, told).object()
        return life.move(decide, setup.acting(setup.operator), **changes)

    return Case(RUNNING, f"an operator that, taking a job away, {title}", attempt)


def _by_another(phase: Phase, decide: Decide) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase)
        if phase is Phase.DEAD_LETTER:
            life.change_spec(redrive=1).object()
        if phase is Phase.PENDING and decide is dropped:
            life.change_spec(cancel=True).object()
        return life.move(decide, setup.acting(setup.other.client))

    return Case(
        HOLDER, f"a worker that takes a {phase} job not its own: {decide.__name__}", attempt
    )


def _claims(setup: ForbiddenSetup, pod: str, uid: str, by: Client) -> Answer:
    life = setup.life()
    return setup.acting(by).merge(life.status_path, claim_of(life.read(), pod, uid))


def _in_anothers_name(setup: ForbiddenSetup) -> Answer:
    return _claims(setup, setup.worker.pod, setup.worker.pod_uid, setup.other.client)


def _with_anothers_uid(setup: ForbiddenSetup) -> Answer:
    return _claims(setup, setup.other.pod, setup.worker.pod_uid, setup.other.client)


def _without_a_pod(setup: ForbiddenSetup) -> Answer:
    nobody = setup.space.as_account(WORKER_ACCOUNT)
    return _claims(setup, setup.worker.pod, setup.worker.pod_uid, nobody)


def _in_no_name_without_a_pod(setup: ForbiddenSetup) -> Answer:
    return _claims(setup, "", "", setup.space.as_account(WORKER_ACCOUNT))


def _renewed_by_another(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    body = {"status": {"lease": {"renewals": 1, "renewTime": at(20)}}}
    return setup.acting(setup.other.client).merge(life.status_path, body)


def _progress_of_another(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    body = {"status": {"progress": {"percent": 50}}}
    return setup.acting(setup.other.client).merge(life.status_path, body)


def _by_a_new_pod_of_that_name(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    pods = setup.space.path("pods")
    name = setup.worker.pod
    setup.space.admin.delete(f"{pods}/{name}").object()
    successor = setup.space.worker(name)
    return life.move(succeeded, setup.acting(successor.client))


def _own_success_again(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.SUCCEEDED)
    return setup.acting(setup.worker.client).merge(
        life.status_path, {"status": {"phase": "Succeeded"}}
    )


def _admitted_by_a_worker(setup: ForbiddenSetup) -> Answer:
    life = setup.life(notBefore=at())
    body = {"status": {"admitted": True}}
    return setup.acting(setup.worker.client).merge(life.status_path, body)


def _rerun_swallowed(**changes: Any) -> Callable[[ForbiddenSetup], Answer]:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        life.change_spec(rerun=2).object()
        return setup.acting(setup.worker.client).merge(
            life.status_path, {"status": {"reruns": 2, **changes}}
        )

    return attempt


def _rerun_swallowed_with_the_claim(setup: ForbiddenSetup) -> Answer:
    life = setup.life()
    life.change_spec(rerun=1).object()
    body = claim_of(life.read(), setup.worker.pod, setup.worker.pod_uid)
    body["status"]["reruns"] = 1
    return setup.acting(setup.worker.client).merge(life.status_path, body)


def _rerun_swallowed_with_the_outcome(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    life.change_spec(rerun=1).object()
    return life.move(succeeded, setup.acting(setup.worker.client), reruns=1)


OWNERS: Final[tuple[Case, ...]] = (
    _by_another(Phase.RUNNING, succeeded),
    _by_another(Phase.RUNNING, failed),
    _by_another(Phase.PENDING, promoted),
    _by_another(Phase.PENDING, dropped),
    _by_another(Phase.RETRYING, promoted),
    _by_another(Phase.DEAD_LETTER, redriven),
    Case(HOLDER, "a claim in another pod's name", _in_anothers_name),
    Case(HOLDER, "a claim with another pod's UID", _with_anothers_uid),
    Case(HOLDER, "a claim by a token that is bound to no pod", _without_a_pod),
    Case(
        HOLDER, "a claim in no name by a token that is bound to no pod", _in_no_name_without_a_pod
    ),
    Case(HOLDER, "a heartbeat for another's job", _renewed_by_another),
    Case(HOLDER, "progress of another's job", _progress_of_another),
    Case(HOLDER, "success by a new pod of the holder's name", _by_a_new_pod_of_that_name),
    Case(HOLDER, "a report on its own job after success", _own_success_again),
    Case(HOLDER, "an admission by a worker", _admitted_by_a_worker),
    *(
        _by_the_operator(Phase.RUNNING, decide)
        for decide in (succeeded, failed, released, given_up, refused, parked)
    ),
    Case(TRANSITION, "a claim by the operator in a worker's name", _claimed_by_the_operator),
    Case(TRANSITION, "a claim by an operator's pod in its own name", _in_the_operators_own_name),
    Case(
        TRANSITION, "a claim by an administrator in a worker's name", _claimed_by_an_administrator
    ),
    Case(TRANSITION, "success by an administrator", _succeeded_by_an_administrator),
    _ended_by_its_holder(crashed),
    _ended_by_its_holder(evicted),
    _written_while_running("the renewals", lease={"renewals": 1, "renewTime": at(20)}),
    _written_while_running("the progress", progress={"percent": 50}),
    _written_while_running("the checkpoint", checkpoint={"row": 3}),
    _written_while_running("a step", steps={"charge": RECORD}),
    _written_while_running("the message", message="forged"),
    _written_while_running("the last update", lastUpdateTime=at(99)),
    Case(RUNNING, "a rerun acknowledged together with a renewal", _written_with_a_rerun),
    Case(RUNNING, "an operator that takes the progress away", _taken_away_while_running),
    _taken_away_with("plants a checkpoint", crashed, checkpoint={"row": 9}),
    _taken_away_with("drops the checkpoint", evicted, checkpoint=None),
    _taken_away_with("plants progress", overran, progress={"percent": 99}),
    _taken_away_with("plants progress in what it cancels", cancelled, progress={"percent": 99}),
    Case("owner.rerun", "a holder that acknowledges a rerun", _rerun_swallowed()),
    Case(
        "owner.rerun",
        "a heartbeat that acknowledges a rerun",
        _rerun_swallowed(lease={"renewals": 1}),
    ),
    Case("owner.rerun", "a claim that acknowledges a rerun", _rerun_swallowed_with_the_claim),
    Case("owner.rerun", "a success that acknowledges a rerun", _rerun_swallowed_with_the_outcome),
)
