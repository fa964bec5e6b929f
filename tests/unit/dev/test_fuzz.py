"""How much `make fuzz` tries in the time that it is given, and what it has all properties try."""

import os
import subprocess
import sys
from pathlib import Path

from asyncjob_dev.fuzz import EXAMPLES, LEAST_EXAMPLES, examples_in

TESTS = Path(__file__).parents[2]
PROFILE = """
import conftest
from hypothesis import settings
print(settings().derandomize, settings().max_examples)
"""


def test_a_round_ends_when_the_time_does() -> None:
    assert examples_in(seconds=45, seconds_each=0.3, most=EXAMPLES) == 150
    assert examples_in(seconds=3600, seconds_each=0.3, most=EXAMPLES) == EXAMPLES


def test_no_round_begins_for_which_there_is_no_time() -> None:
    assert examples_in(seconds=0.3 * LEAST_EXAMPLES - 1, seconds_each=0.3, most=EXAMPLES) == 0
    assert examples_in(seconds=-1, seconds_each=0.3, most=EXAMPLES) == 0


def profile(**environment: str) -> str:
    """Return whether properties try the same examples each time, and how many, in CI."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILE],
        env={**os.environ, "CI": "true", **environment},
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_in_ci_properties_try_other_examples_only_where_it_says_how_many() -> None:
    assert profile() == "True 100"
    assert profile(ASYNCJOB_FUZZ_EXAMPLES="2000") == "False 2000"
