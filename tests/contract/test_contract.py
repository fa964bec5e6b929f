"""One suite for the fake cluster and the real one; where both pass, their objects are compared."""

import asyncio
from itertools import pairwise

import pytest

from asyncjob.json_types import child
from contract import fake, real
from contract.lives import Life, comparable
from contract.scenarios import SCENARIOS
from support.judging.checker import change_violations
from support.parts.array_world import counts_add_up

each = pytest.mark.parametrize("name", SCENARIOS)
on_real = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def fake_lives() -> dict[str, Life]:
    return asyncio.run(fake.run_all())


@pytest.fixture(scope="module")
def real_lives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Life]:
    with real.prepared_namespace(tmp_path_factory.mktemp("town")) as ns:
        return asyncio.run(real.run_all(ns))


@each
@pytest.mark.parametrize("cluster", ["fake", pytest.param("real", marks=on_real)])
def test_the_scenario_holds(cluster: str, name: str, request: pytest.FixtureRequest) -> None:
    lives: dict[str, Life] = request.getfixturevalue(f"{cluster}_lives")
    lives[name].check()


@each
@pytest.mark.integration
@pytest.mark.timeout(180)
def test_the_fake_cluster_stores_what_the_real_one_stores(
    name: str, fake_lives: dict[str, Life], real_lives: dict[str, Life]
) -> None:
    faked, lived = fake_lives[name], real_lives[name]
    faked.check()
    lived.check()
    assert comparable(faked.objects) == comparable(lived.objects)


@each
def test_no_step_of_the_fake_cluster_breaks_a_rule(name: str, fake_lives: dict[str, Life]) -> None:
    broken = [
        rule
        for versions in fake_lives[name].versions
        for before, after in pairwise(versions)
        for rule in change_violations(before, after)
    ]
    assert broken == []


@each
def test_the_fake_cluster_never_loses_or_counts_an_item_twice(
    name: str, fake_lives: dict[str, Life]
) -> None:
    versions = [one for versions in fake_lives[name].array_versions for one in versions]
    counted = [one for one in versions if "next" in child(one, "status")]
    assert all(counts_add_up(child(one, "status")) for one in counted)
