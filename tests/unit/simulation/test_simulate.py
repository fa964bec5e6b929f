"""Simulations as a whole: a small budget of seeds, the same run twice, planted bugs."""

import itertools
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from unittest.mock import patch

import pytest

from asyncjob_simulation.life import Options, simulate
from asyncjob_simulation.mutations import by_name, search
from asyncjob_simulation.planting import MUTATIONS
from asyncjob_simulation.profiles import Profile
from asyncjob_simulation.shrink import shrink, tell
from asyncjob_worker.leases.heartbeat import HeartbeatThread

SEEDS = range(9_000, 9_012)
"""A fixed budget; `make simulate` has fresh ones."""

FEW_SEEDS = range(9_000, 9_004)

HANGING_SEEDS = (9_019, 9_033)
"""Seeds in which handlers run on when nothing stops them with their leases."""

SEARCH_SECONDS = 200.0
TURNS = 10
"""Turns of a clock that counts how often it is asked: a few tries, on however busy a machine."""

FEW = 400
"""Faults of a life of which a few tries leave some out."""

_DIGESTS = """
import os
elsewhere = [bytearray(number % 300) for number in range(int(os.environ["OBJECTS"]))]
del elsewhere[::3]  # what is made from now on lies elsewhere in memory
from asyncjob_simulation.life import Options, simulate
from asyncjob_simulation.profiles import Profile
digests = [simulate(seed).digest for seed in (9_001, 9_004, 9_001)]
others = [simulate(9_001, Options(profile=one)).digest for one in list(Profile)[1:]]
print(others, digests[:2], digests[0] == digests[2])  # whatever was simulated before
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_and_nothing_doubled(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.violations
    assert outcome.counts["job"] > 0


@pytest.mark.parametrize(
    ("profile", "what"),
    [
        (Profile.WAITS, "step stored"),
        (Profile.ARRAYS, "results read"),
        (Profile.CHILDREN, "woken by children"),
    ],
)
def test_nothing_is_lost_of_waits_arrays_and_children(profile: Profile, what: str) -> None:
    outcomes = [simulate(seed, Options(profile=profile)) for seed in FEW_SEEDS]
    assert not [one for outcome in outcomes for one in outcome.violations]
    assert sum(outcome.counts[what] for outcome in outcomes) > 0


@pytest.mark.parametrize("profile", Profile)
def test_a_seed_of_a_profile_is_the_same_run_twice(profile: Profile) -> None:
    first, again = (simulate(9_002, Options(profile=profile)).digest for _ in range(2))
    assert first == again


_PACKAGES = sysconfig.get_path("purelib")
"""Where this Python's packages are, for another that has none of its own."""

MACHINES: tuple[dict[str, str], ...] = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C", "OBJECTS": "0"},
    {
        "PYTHONHASHSEED": "2",
        "TZ": "Pacific/Chatham",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "0",
        "OBJECTS": "10001",
    },
    {
        "PYTHONHASHSEED": "3",
        "TZ": "XYZ+9:30",
        "HOSTNAME": "other",
        "PYTHONMALLOC": "malloc",
        "PYTHONOPTIMIZE": "1",
        "OBJECTS": "3333",
    },
)
"""Environments as they differ between machines."""


def digests(
    environment: dict[str, str], directory: Path, cpus: set[int], python: str = sys.executable
) -> str:
    """Return the digests of all that happens in two seeds, in a process of its own."""

    def confine() -> None:
        os.sched_setaffinity(0, cpus)

    done = subprocess.run(
        [python, "-c", f"import site; site.addsitedir({_PACKAGES!r})\n{_DIGESTS}"],
        env={**os.environ, **environment, "HOME": str(directory)},
        cwd=directory,
        preexec_fn=confine,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.timeout(300)
def test_a_seed_is_the_same_run_to_the_byte_in_every_process(tmp_path: Path) -> None:
    all_cpus = os.sched_getaffinity(0)
    one_cpu = {min(all_cpus)}
    runs = set[str]()
    for number, environment in enumerate(MACHINES):
        directory = tmp_path / f"machine-{number}"
        directory.mkdir()
        runs.add(digests(environment, directory, one_cpu if number else all_cpus))
    assert len(runs) == 1
    assert runs.pop().rstrip().endswith("True")


def other_python() -> str | None:
    """Return a Python of this minor and another patch release, if the machine has one."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for folder in (
        *os.get_exec_path(),
        *sorted(map(str, Path(sys.base_prefix).parent.glob("*/bin"))),
    ):
        path = Path(folder, name)
        if not path.is_file() or "shims" in path.parts:
            continue
        ask = [str(path), "-c", "import sys; print(sys.version_info[:3])"]
        if subprocess.check_output(ask, text=True).strip() != str(sys.version_info[:3]):
            return str(path)
    return None


@pytest.mark.timeout(300)
def test_a_seed_is_the_same_run_to_the_byte_in_another_patch_release_of_python(
    tmp_path: Path,
) -> None:
    other = other_python()
    if other is None:
        pytest.skip("this machine has one patch release of this Python only")
    cpus = os.sched_getaffinity(0)
    runs = [digests(MACHINES[0], tmp_path, cpus, python) for python in (other, sys.executable)]
    assert runs[0] == runs[1]


def test_a_story_changes_nothing() -> None:
    told = simulate(SEEDS[0], Options(tells=True))
    assert told.digest == simulate(SEEDS[0]).digest
    assert any("POST" in entry.words for entry in told.entries)


def test_a_lease_that_expires_although_nothing_kept_its_worker_from_renewing_it_is_noticed() -> (
    None
):
    with patch.object(HeartbeatThread, "_is_due", lambda *_: False):
        outcomes = [simulate(seed) for seed in SEEDS]
    broken = {one.promise for outcome in outcomes for one in outcome.violations}
    assert "no lease expires while its worker can renew it" in broken


def test_a_handler_that_goes_on_beyond_its_lease_is_noticed() -> None:
    with by_name("never fence").plant(), by_name("fenced by one thread").plant():
        outcomes = [simulate(seed) for seed in HANGING_SEEDS]
    broken = {one.promise for outcome in outcomes for one in outcome.violations}
    assert "no handler goes on beyond its lease" in broken


QUICKLY_FOUND = ("no dependencies", "no start times", "limit off by one", "key without effect")


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_planted_bug_is_found(name: str) -> None:
    assert search(by_name(name), 1, SEARCH_SECONDS).seed is not None


def test_a_failure_is_made_small_and_told() -> None:
    with by_name("no dependencies").plant():
        lives = map(simulate, range(1, 50))
        found = next(one for one in lives if one.violations and 0 < len(one.faults) < FEW)
        small = shrink(found, TURNS, clock=itertools.count().__next__).outcome
    assert small.violations[0].promise == found.violations[0].promise
    assert len(small.faults) < len(found.faults)
    story = tell(small)
    assert any("INVARIANT" in line for line in story)
    assert any("POST" in line for line in story)


def test_no_two_planted_bugs_have_one_name() -> None:
    names = [one.name for one in MUTATIONS]
    assert len(names) == len(set(names)) >= 25
