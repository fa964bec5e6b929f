"""Both API servers, the real one and the one in memory, and what forbidden writes need.

Every test here is a clause of the contract between the two: what one refuses or accepts the other
does as well, in the same words.
"""

import itertools
import time
from collections.abc import Iterator
from functools import partial

import pytest

from asyncjob.rules.policies import POLICIES
from asyncjob_dev.controlplane import ControlPlane
from support.cluster import mutants
from support.cluster.api import Answer, Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.forbidden import CASES, Case, ForbiddenSetup
from support.in_memory.memory import memory_admin, memory_server

NUMBERS = itertools.count(1)


@pytest.fixture(scope="package", params=["memory", "real"])
def admin(request: pytest.FixtureRequest) -> Client:
    """Act as who may do everything, on either API server."""
    if request.param == "memory":
        return memory_admin(memory_server(time.time))
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return Client(plane.url, plane.ca_file, plane.admin_token)


@pytest.fixture
def setup(space: Space) -> ForbiddenSetup:
    """Make two workers and an operator."""
    return ForbiddenSetup.set_in(space)


@pytest.fixture(scope="package")
def shared_space(admin: Client) -> Space:
    """Create a namespace for tests whose objects have names of their own.

    There may be several on a real API server: tests on it and on the one in memory take turns.
    """
    return Space(f"shared-{next(NUMBERS)}", admin).create()


@pytest.fixture
def shared_setup(shared_space: Space) -> ForbiddenSetup:
    """Make two workers and an operator there."""
    return ForbiddenSetup.set_in(shared_space)


@pytest.fixture(scope="package")
def each_rule_apart(admin: Client) -> Iterator[None]:
    """Have each rule be a policy of its own in some namespaces, and wait until all are in force."""
    mutants.install(admin)
    rules = [rule.id for policy in POLICIES for rule in policy.rules]
    for tried, lacked in ((rules[1:], rules[0]), (rules[:1], rules[1])):
        space = mutants.namespace_without(admin, lacked, "in-force-but")
        setup = ForbiddenSetup.set_in(space, dry=True)
        for rule in tried:
            cases = itertools.cycle([case for case in CASES if case.rule == rule])
            until(partial(mutants.is_refused_by, rule), partial(attempt_next, cases, setup), rule)
    yield
    mutants.uninstall(admin)


def attempt_next(cases: Iterator[Case], setup: ForbiddenSetup) -> Answer:
    return next(cases).attempt(setup)


@pytest.fixture(scope="module")
def whole_crds_afterwards(admin: Client) -> Iterator[None]:
    """Let tests leave CRDs behind that lack a rule."""
    yield
    mutants.replace_crds(admin)
