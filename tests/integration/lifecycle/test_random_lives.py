"""Random operations by many actors on a real API server keep every rule; a planted bug is found.

The API server is one of its own: an operator at work would move jobs behind the actors' backs.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test

from asyncjob.lifecycle.phases import Phase as LifePhase
from asyncjob.names import JOBS, collection_path, job_status_path
from asyncjob.rules.job_policies import LIFECYCLE_POLICY
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.schema.manifests import to_yaml
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.cluster.installation import install as install_all
from support.driven.random_lives import NUMBERS, RandomLives, RandomRun
from support.objects.builders import job

pytestmark = [pytest.mark.integration, pytest.mark.soak]

LIVES, STEPS = 50, 40
"""So many runs of so many steps each; a step is a write and a read."""

PLANTED = "running.checkpoint"

PLAN = settings(
    max_examples=LIVES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=True,
    print_blob=False,
    verbosity=Verbosity.quiet,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def quiet_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        install_all(plane)
        yield plane


@pytest.fixture
def quiet(quiet_plane: ControlPlane) -> Space:
    admin = Client(quiet_plane.url, quiet_plane.ca_file, quiet_plane.admin_token)
    return Space(f"lives-{next(NUMBERS)}", admin).create()


def run(space: Space) -> RandomRun:
    return RandomRun(space, space.operator(), (space.worker("worker-0"), space.worker("worker-1")))


@pytest.mark.timeout(240)
def test_no_mix_of_writes_by_anyone_breaks_a_rule(quiet: Space) -> None:
    RandomLives.run = run(quiet)

    run_state_machine_as_test(RandomLives, settings=PLAN)

    done = RandomLives.run
    assert done.steps >= LIVES * STEPS / 3
    assert done.accepted >= done.steps / 10
    assert done.reached == {phase.value for phase in LifePhase}


@pytest.fixture
def lenient(quiet_plane: ControlPlane, quiet: Space) -> Iterator[Space]:
    """Take one rule out of the policy, for as long as the test runs."""
    rules = tuple(rule for rule in LIFECYCLE_POLICY.rules if rule.id != PLANTED)
    assert len(rules) == len(LIFECYCLE_POLICY.rules) - 1
    install(quiet_plane, quiet, replace(LIFECYCLE_POLICY, rules=rules), forgery_passes=True)
    yield quiet
    install(quiet_plane, quiet, LIFECYCLE_POLICY, forgery_passes=False)


def install(
    plane: ControlPlane, space: Space, policy: AdmissionPolicy, *, forgery_passes: bool
) -> None:
    """Apply the policy and wait until it is in force."""
    plane.kubectl("apply", "--filename=-", input=to_yaml(policy.manifests()))
    space.admin.create(collection_path(space.name, JOBS), job("probe"))
    until(
        lambda answer: answer.accepted == forgery_passes,
        lambda: space.admin.dry().merge(
            job_status_path(space.name, "probe"), {"status": {"checkpoint": {"forged": True}}}
        ),
        "policy",
    )


@pytest.mark.timeout(240)
def test_a_rule_taken_out_is_found_out(lenient: Space) -> None:
    """It ends with the first find, and may take longer than a search that finds nothing."""
    RandomLives.run = run(lenient)
    plan = settings(PLAN, max_examples=4 * LIVES)

    with pytest.raises(AssertionError, match="checkpoint changed while the job was"):
        run_state_machine_as_test(RandomLives, settings=plan)
