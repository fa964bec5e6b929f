"""The API server in memory has the installed rules: it refuses what each of them forbids."""

import pytest

from support.cluster.api import Client
from support.cluster.identities import Space
from support.forbidden import CASES, Case, ForbiddenSetup
from support.forbidden.case import NUMBERS
from support.in_memory.memory import memory_admin, memory_server


@pytest.fixture(scope="module")
def admin() -> Client:
    return memory_admin(memory_server())


@pytest.fixture
def setup(admin: Client) -> ForbiddenSetup:
    space = Space(f"rules-{next(NUMBERS)}", admin).create()
    return ForbiddenSetup.set_in(space, dry=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_write_that_breaks_a_rule_is_refused_by_it(setup: ForbiddenSetup, case: Case) -> None:
    answer = case.attempt(setup)
    assert f"({case.rule})" in answer.message
    assert not answer.accepted
