"""A part that is killed at a request leaves the same end; with a bug planted it does not.

`make perturb` runs all cases. Here are a few, to hold that command to what it says, and one with a
bug that it has to find.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.plan import Part, When
from asyncjob_perturbation.processes import prepare
from support.judging.perturbed import CLAIM, at, outcomes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SUCCESS: Final = Call("PATCH asyncjobs/flaky/status Succeeded", 1)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    prepare()
    with ControlPlane() as plane:
        yield plane


async def test_kills_and_a_lost_answer_come_to_the_same_end_and_not_where_a_bug_is_planted(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    cases = [
        (at(CLAIM, When.BEFORE), ""),
        (at(CLAIM, When.AFTER), ""),
        (at(SUCCESS, When.LOST), ""),
        (at(CLAIM, When.AFTER), "no recovery"),
    ]
    came = await outcomes(control_plane, tmp_path, "retry", Part.WORKER, cases)
    assert all(outcome.reached for outcome in came)
    assert [outcome.failed for outcome in came] == [False, False, False, True], [
        (outcome.differences, outcome.broken) for outcome in came
    ]
    spent = [outcome.state["asyncjobs/flaky"]["attempt"] for outcome in came[:3]]
    assert spent == [3, 4, 3]
    told = "\n".join(came[3].told)
    assert "asyncjobs/flaky  Running" in told
    assert "last lines of the operator" in told
