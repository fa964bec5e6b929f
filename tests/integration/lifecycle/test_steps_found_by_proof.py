"""Each step that the proof found is refused by an API server with all rules, for one rule alone.

With that rule taken out it is accepted. Rule, translation and the runtime of CEL that the search
asks are so held to what a real API server makes of the rule.
"""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from asyncjob.names import (
    ARRAYS,
    GROUP,
    JOBS,
    array_path,
    array_status_path,
    collection_path,
    job_path,
    job_status_path,
)
from asyncjob_dev.proofs.rules.admission import ARRAY_RULES, JOB_RULES, Subresource
from asyncjob_dev.proofs.rules.kinds import ARRAY, JOB
from asyncjob_dev.proofs.rules.need import OWN_POD, OWN_UID, Counterexample, read_file
from support.cluster import mutants
from support.cluster.api import Answer, Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.objects.builders import array, job

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

OF_JOBS, OF_ARRAYS = read_file(JOB), read_file(ARRAY)
OF_PHASES = {rule.id for rule in (*JOB_RULES.of_phases, *ARRAY_RULES.of_phases)}
BY_CRD = [step for step in OF_JOBS if step.rule in OF_PHASES]
BY_POLICY = [step for step in (*OF_JOBS, *OF_ARRAYS) if step.rule not in OF_PHASES]
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class LeaseHolderSetup:
    """A namespace with the pod that holds, or does not hold, a job's lease."""

    space: Space
    pod: str
    pod_uid: str
    worker: Client
    operator: Client

    @classmethod
    def set_in(cls, space: Space) -> "LeaseHolderSetup":
        worker = space.worker("worker-0")
        return cls(space, worker.pod, worker.pod_uid, worker.client, space.operator())

    def perform(self, step: Counterexample) -> "Performance":
        """Bring a new job, or a new array, into the state before the step."""
        name = f"step-{next(NUMBERS)}"
        if step in OF_ARRAYS:
            return self._perform_on_array(step, name)
        admin, old = self.space.admin, self.named(step.old)
        counters = {key: old["spec"].pop(key, None) for key in ("redrive", "rerun")}
        manifest = job(name, **old["spec"])
        manifest["metadata"]["labels"] = {mutants.SETTING_UP: ""}
        admin.create(collection_path(self.space.name, JOBS), manifest).object()
        path, status_path = job_path(self.space.name, name), job_status_path(self.space.name, name)
        admin.merge(path, {"spec": counters}).object()
        for phase in way_to(old["status"]["phase"]):
            admin.merge(status_path, {"status": {"phase": phase}}).object()
        return self._ready(step, path, status_path)

    def _perform_on_array(self, step: Counterexample, name: str) -> "Performance":
        manifest = array(name, **step.old["spec"])
        manifest["metadata"]["labels"] = {mutants.SETTING_UP: ""}
        self.space.admin.create(collection_path(self.space.name, ARRAYS), manifest).object()
        path, status_path = (
            find(self.space.name, name) for find in (array_path, array_status_path)
        )
        return self._ready(step, path, status_path)

    def _ready(self, step: Counterexample, path: str, status_path: str) -> "Performance":
        """Store the status before the step, and have the rules apply from now on."""
        old = self.named(step.old)
        replaced = {"op": "replace", "path": "/status", "value": old["status"]}
        self.space.admin.patch(status_path, [replaced]).object()
        without_label = {"metadata": {"labels": {mutants.SETTING_UP: None}}}
        ready = self.space.admin.merge(path, without_label).object()
        assert ready["status"] == old["status"]
        return Performance(self, step, path, status_path, self._writer(step))

    def _writer(self, step: Counterexample) -> Client:
        """Return who writes; no worker has rights on arrays, so another account gets some."""
        if step.writer == "operator":
            return self.operator
        if step not in OF_ARRAYS:
            return self.worker
        name = f"stranger-{next(NUMBERS)}"
        rights = {"resources": [ARRAYS, f"{ARRAYS}/status"], "verbs": ["get", "patch"]}
        self.space.grant(name, {"apiGroups": [GROUP], **rights})
        return self.space.as_account(name)

    def named(self, value: Any) -> Any:
        """Return the object with the names of this setup's pod."""
        match value:
            case dict():
                return {key: self.named(inner) for key, inner in value.items()}
            case list():
                return [self.named(inner) for inner in value]
            case _:
                return {OWN_POD: self.pod, OWN_UID: self.pod_uid}.get(value, value)


@dataclass(frozen=True)
class Performance:
    """A job, or an array, in the state before a step."""

    setup: LeaseHolderSetup
    step: Counterexample
    path: str
    status_path: str
    writer: Client

    def attempt(self) -> Answer:
        """Try the step, without effect."""
        half = self.step.subresource.value
        value = self.setup.named(self.step.new)[half]
        replaced = {"op": "replace", "path": f"/{half}", "value": value}
        if self.step.subresource is Subresource.SPEC:
            return self.setup.space.admin.dry().patch(self.path, [replaced])
        return self.writer.dry().patch(self.status_path, [replaced])


def way_to(phase: str) -> list[str]:
    """Return phases through which a new job gets to this one by legal steps."""
    by_way_of = {"Retrying": ["Running"], "Succeeded": ["Running"]}
    return [] if phase == "Queued" else [*by_way_of.get(phase, []), phase]


@pytest.fixture(scope="module")
def full(admin: Client, each_rule_apart: None) -> LeaseHolderSetup:
    """Prepare a namespace where every rule holds, and wait until jobs can be set up there."""
    space = Space("every-rule", admin).create()
    probe = job("probe")
    probe["metadata"]["labels"] = {mutants.SETTING_UP: ""}
    admin.create(collection_path(space.name, JOBS), probe).object()
    for path, illegal in (
        (job_status_path(space.name, "probe"), {"status": {"attempt": 9}}),
        (job_path(space.name, "probe"), {"spec": {"type": "other"}}),
    ):
        ask = partial(admin.dry().merge, path, illegal)
        until(lambda answer: answer.accepted, ask, "policies leave jobs alone that are set up")
    return LeaseHolderSetup.set_in(space)


def is_refused_for(step: Counterexample, answer: Answer) -> bool:
    return f"({step.rule})" in answer.message


@pytest.mark.parametrize("step", BY_POLICY, ids=lambda step: step.rule)
def test_a_step_is_refused_with_its_rule_and_accepted_without(
    admin: Client, full: LeaseHolderSetup, step: Counterexample
) -> None:
    refused = full.perform(step).attempt()
    assert is_refused_for(step, refused), refused.message

    space = mutants.namespace_without(admin, step.rule, "no")
    without = LeaseHolderSetup.set_in(space)
    other = next(one for one in BY_POLICY if one != step)
    by_itself = partial(mutants.is_refused_by, other.rule)
    attempt = without.perform(other).attempt
    until(by_itself, attempt, "the other rules hold, each by itself")
    attempt = without.perform(step).attempt
    until(lambda answer: answer.accepted, attempt, f"accepted without {step.rule}")


@pytest.mark.parametrize("step", BY_CRD, ids=lambda step: step.rule)
def test_a_step_is_refused_with_the_rule_of_the_crd_and_accepted_without(
    admin: Client, full: LeaseHolderSetup, whole_crds_afterwards: None, step: Counterexample
) -> None:
    attempt = full.perform(step).attempt
    refused = attempt()
    assert is_refused_for(step, refused), refused.message
    mutants.replace_crds(admin, without=step.rule)
    until(lambda answer: answer.accepted, attempt, step.rule)
