"""Take any one rule away, and a write that it alone forbids goes through.

So no rule is untested, none is only an echo of others, and no write is refused for another reason
than the test says.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.rule import Rule
from asyncjob.schema.crd import CRD_RULES
from support.cluster import mutants
from support.cluster.api import Answer, Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.forbidden import CASES, Case, ForbiddenSetup

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
"""The first test installs a policy less a rule, and a namespace, for each rule."""

GOVERNED = [(policy, rule) for policy in POLICIES for rule in policy.rules]
RULED = [placed.rule for placed in CRD_RULES]


def cases_of(rule: str) -> list[Case]:
    return [case for case in CASES if case.rule == rule]


def namespace_without(rule: str) -> str:
    return f"without-{rule.replace('.', '-').lower()}"


@pytest.fixture(scope="module")
def lesser_policies(admin: Client) -> Iterator[None]:
    """Install one policy less each rule, all at once: the API server takes a second to see them."""
    installed = []
    with mutants.real_policies_step_aside(admin):
        for policy, rule in GOVERNED:
            space = Space(namespace_without(rule.id), admin).create()
            admin.merge(
                f"/api/v1/namespaces/{space.name}",
                {"metadata": {"labels": {mutants.LABEL: policy.name}}},
            ).object()
            installed.append(mutants.install(admin, policy, rule.id, space.name))
        yield
        for name in installed:
            mutants.remove(admin, name)


def make_setup(space: Space) -> ForbiddenSetup:
    worker, other = space.worker("worker-0"), space.worker("worker-1")
    return ForbiddenSetup(space, worker, other, space.operator(), dry=True)


@pytest.mark.parametrize(("policy", "rule"), GOVERNED, ids=[rule.id for _, rule in GOVERNED])
def test_without_a_rule_of_a_policy_a_write_goes_through(
    admin: Client, lesser_policies: None, policy: AdmissionPolicy, rule: Rule
) -> None:
    setup = make_setup(Space(namespace_without(rule.id), admin))
    others = [other for other in policy.rules if other.id != rule.id]
    if others:
        lesser = f"{setup.space.name}.{policy.name}"
        witness = cases_of(others[0].id)[0]
        until(partial(is_refused_by, lesser), partial(witness.attempt, setup), lesser)

    assert_one_goes_through(setup, rule)


def is_refused_by(policy: str, answer: Answer) -> bool:
    return f"'{policy}'" in answer.message


def assert_one_goes_through(setup: ForbiddenSetup, rule: Rule) -> None:
    """Try until one is accepted; each makes its own job, and none takes effect."""
    cases = cases_of(rule.id)
    tried = iter(cases * 100)
    until(lambda answer: answer.accepted, lambda: next(tried).attempt(setup), rule.id)


@pytest.mark.parametrize("rule", RULED, ids=[rule.id for rule in RULED])
def test_without_a_rule_of_a_crd_a_write_goes_through(
    admin: Client, space: Space, rule: Rule
) -> None:
    setup = make_setup(space)
    case = cases_of(rule.id)[0]
    try:
        mutants.replace_crds(admin, tuple(placed for placed in CRD_RULES if placed.rule != rule))
        assert_one_goes_through(setup, rule)
    finally:
        mutants.replace_crds(admin)
        until(lambda answer: not answer.accepted, partial(case.attempt, setup), rule.id)


def test_each_rule_has_a_write_that_breaks_it_and_each_write_breaks_a_rule() -> None:
    known = {rule.id for rule in [*RULED, *(rule for _, rule in GOVERNED)]}
    assert {case.rule for case in CASES} == known


def test_no_two_rules_have_the_same_id() -> None:
    ids = [rule.id for rule in [*RULED, *(rule for _, rule in GOVERNED)]]
    assert len(ids) == len(set(ids))
