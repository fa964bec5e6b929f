"""Bugs to plant in the product: what they are, and the list of all."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decide import POLICY_CHAINS
from asyncjob_simulation.processes import current_process
from asyncjob_simulation.profiles import Profile

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Mutation:
    """One bug: what is wrong, how it gets into the code, and who found it when it was there."""

    name: str
    words: str
    plant: Plant
    origin: str = ""
    found_by: str = ""
    """What finds it, where simulating does not in the time that it is given."""

    profile: Profile = Profile.JOBS
    """What the jobs do in whose lives it is searched for."""


MUTATIONS: Final[list[Mutation]] = []


READER: Final = "a reader"
SIMULATION: Final = "simulation"


def mutation(
    words: str, origin: str = "", found_by: str = "", profile: Profile = Profile.JOBS
) -> Callable[[Plant], Plant]:
    """Add a mutation, called like the function that plants it."""

    def add(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", " ")
        MUTATIONS.append(Mutation(name, words, plant, origin, found_by, profile))
        return plant

    return add


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def without(phase: Phase, policy: Any) -> AbstractContextManager[object]:
    """Leave one policy of a phase out."""
    chain = tuple(one for one in POLICY_CHAINS[phase] if one is not policy)
    return patch.dict(POLICY_CHAINS, {phase: chain})


def any_version(cache: Any, attribute: str) -> AbstractContextManager[object]:
    """Have a cache take each version for a newer one."""
    make = cache.__init__

    def init(self: Any, *args: Any, **more: Any) -> None:
        make(self, *args, **more)
        getattr(self, attribute).accept = lambda *_: True

    return patch.object(cache, "__init__", init)


def settable() -> float:
    """Return seconds of a clock that goes with the wall clock when that is set."""
    process = current_process()
    return asyncio.get_running_loop().time() + (process.wall_offset if process else 0.0)
