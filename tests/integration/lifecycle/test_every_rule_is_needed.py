"""Take any one rule away, and a write that it alone forbids goes through.

So no rule is untested, none is only an echo of others, and no write is refused for another reason
than the test says.
"""

from functools import partial

import pytest

from asyncjob.rules.policies import POLICIES
from asyncjob.schema.crd import CRD_RULES
from support.cluster import mutants
from support.cluster.api import Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.forbidden import CASES, Case, ForbiddenSetup

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
"""The first test installs a policy for each rule."""

GOVERNED = [rule.id for policy in POLICIES for rule in policy.rules]
RULED = [placed.rule.id for placed in CRD_RULES]


def cases_of(rule: str) -> list[Case]:
    return [case for case in CASES if case.rule == rule]


@pytest.mark.parametrize("rule", GOVERNED)
def test_without_a_rule_of_a_policy_a_write_goes_through(
    admin: Client, each_rule_apart: None, rule: str
) -> None:
    setup = ForbiddenSetup.set_in(mutants.namespace_without(admin, rule, "without"), dry=True)
    other = next(one for one in GOVERNED if one != rule)
    witness = partial(cases_of(other)[0].attempt, setup)
    until(partial(mutants.is_refused_by, other), witness, "the other rules hold, each by itself")
    assert_one_goes_through(setup, rule)


def assert_one_goes_through(setup: ForbiddenSetup, rule: str) -> None:
    """Try until one is accepted; each makes its own job, and none takes effect."""
    cases = cases_of(rule)
    tried = iter(cases * 100)
    until(lambda answer: answer.accepted, lambda: next(tried).attempt(setup), rule)


@pytest.mark.parametrize("rule", RULED)
def test_without_a_rule_of_a_crd_a_write_goes_through(
    admin: Client, whole_crds_afterwards: None, space: Space, rule: str
) -> None:
    setup = ForbiddenSetup.set_in(space, dry=True)
    attempt = partial(cases_of(rule)[0].attempt, setup)
    assert f"({rule})" in attempt().message
    mutants.replace_crds(admin, without=rule)
    assert_one_goes_through(setup, rule)


def test_each_rule_has_a_write_that_breaks_it_and_each_write_breaks_a_rule() -> None:
    assert {case.rule for case in CASES} == {*RULED, *GOVERNED}


def test_no_two_rules_have_the_same_id() -> None:
    assert len({*RULED, *GOVERNED}) == len([*RULED, *GOVERNED])
