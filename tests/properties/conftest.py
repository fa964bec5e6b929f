"""What properties share: searches for planted bugs, by the seed of Hypothesis."""

import secrets

import pytest
from hypothesis import settings

from support.judging.planted_bugs import BugSearch


@pytest.fixture
def bug_search(request: pytest.FixtureRequest) -> BugSearch:
    """Return searches by `--hypothesis-seed`; else by the same seed in CI, by a fresh one here."""
    other = "0" if settings().derandomize else str(secrets.randbits(32))
    return BugSearch(request.config.getoption("--hypothesis-seed") or other)
