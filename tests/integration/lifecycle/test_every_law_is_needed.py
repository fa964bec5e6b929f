"""Take any one law away, and a write that it alone forbids goes through.

So no law is untested, none is only an echo of others, and no write is refused for another reason
than the test says.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.rule import Rule
from asyncjob.schema.crd import CRD_RULES
from support import mutants
from support.api import Answer, Client
from support.enforcement import until
from support.forbidden import CASES, Case, Scene
from support.identities import Space

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
"""The first test installs a policy less a law, and a namespace, for each law."""

GOVERNED = [(policy, law) for policy in POLICIES for law in policy.rules]
RULED = [rule.rule for rule in CRD_RULES]


def cases_of(law: str) -> list[Case]:
    return [case for case in CASES if case.law == law]


def namespace_without(law: str) -> str:
    return f"without-{law.replace('.', '-').lower()}"


@pytest.fixture(scope="module")
def lesser_policies(admin: Client) -> Iterator[None]:
    """Install one policy less each law, all at once: the API server takes a second to see them."""
    installed = []
    with mutants.real_policies_step_aside(admin):
        for policy, law in GOVERNED:
            space = Space(namespace_without(law.id), admin).create()
            admin.merge(
                f"/api/v1/namespaces/{space.name}",
                {"metadata": {"labels": {mutants.LABEL: policy.name}}},
            ).object()
            installed.append(mutants.install(admin, policy, law.id, space.name))
        yield
        for name in installed:
            mutants.remove(admin, name)


def set_scene(space: Space) -> Scene:
    worker, other = space.worker("worker-0"), space.worker("worker-1")
    return Scene(space, worker, other, space.operator(), dry=True)


@pytest.mark.parametrize(("policy", "law"), GOVERNED, ids=[law.id for _, law in GOVERNED])
def test_without_a_law_of_a_policy_a_write_goes_through(
    admin: Client, lesser_policies: None, policy: AdmissionPolicy, law: Rule
) -> None:
    scene = set_scene(Space(namespace_without(law.id), admin))
    others = [other for other in policy.rules if other.id != law.id]
    if others:
        lesser = f"{scene.space.name}.{policy.name}"
        witness = cases_of(others[0].id)[0]
        until(partial(is_refused_by, lesser), partial(witness.attempt, scene), lesser)

    assert_one_goes_through(scene, law)


def is_refused_by(policy: str, answer: Answer) -> bool:
    return f"'{policy}'" in answer.message


def assert_one_goes_through(scene: Scene, law: Rule) -> None:
    """Try until one is accepted; each makes its own job, and none takes effect."""
    cases = cases_of(law.id)
    tried = iter(cases * 100)
    until(lambda answer: answer.accepted, lambda: next(tried).attempt(scene), law.id)


@pytest.mark.parametrize("law", RULED, ids=[law.id for law in RULED])
def test_without_a_rule_of_a_crd_a_write_goes_through(
    admin: Client, space: Space, law: Rule
) -> None:
    scene = set_scene(space)
    case = cases_of(law.id)[0]
    try:
        mutants.replace_crds(admin, tuple(rule for rule in CRD_RULES if rule.rule != law))
        assert_one_goes_through(scene, law)
    finally:
        mutants.replace_crds(admin)
        until(lambda answer: not answer.accepted, partial(case.attempt, scene), law.id)


def test_each_law_has_a_write_that_breaks_it_and_each_write_breaks_a_law() -> None:
    known = {law.id for law in [*RULED, *(law for _, law in GOVERNED)]}
    assert {case.law for case in CASES} == known


def test_no_two_laws_have_the_same_id() -> None:
    ids = [law.id for law in [*RULED, *(law for _, law in GOVERNED)]]
    assert len(ids) == len(set(ids))
