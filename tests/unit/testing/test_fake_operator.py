"""The operator of the test kit decides in the order of the real one."""

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.testing.fake_operator import POLICIES_BY_PHASE
from asyncjob_operator.core.decide import POLICY_CHAINS

SAME = {
    "_cancel": "cancel_waiting",
    "_deadline": "enforce_deadline",
    "_start_deadline": "enforce_start_deadline",
    "_hold": "hold_back",
    "_admit": "admit",
    "_queue_timeout": "enforce_queue_timeout",
}
"""Policies of the kit whose names in the operator are others."""


@pytest.mark.parametrize("phase", Phase)
def test_policies_that_both_have_come_in_the_same_order(phase: Phase) -> None:
    names = [
        SAME.get(one.__name__, one.__name__.removeprefix("_")) for one in POLICIES_BY_PHASE[phase]
    ]
    real = [one.__name__ for one in POLICY_CHAINS[phase]]
    assert [name for name in real if name in names] == names
