"""The reference page says what the program does."""

import re
from pathlib import Path

import click
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import OPERATOR_LEASE
from asyncjob_operator.cli import run
from asyncjob_operator.core.decide import POLICY_CHAINS
from asyncjob_operator.core.permissions import (
    ARRAY_PERMISSIONS,
    CORE,
    RECOVERY,
    SCHEDULES,
    STALE_WORKERS,
    WORKERS,
    election,
)
from asyncjob_operator.core.policies.cancellation import (
    CANCEL,
    CASCADE,
    DEADLINE,
    START_DEADLINE,
)
from asyncjob_operator.core.policies.dead_letters import DEPENDENCY, QUEUE_TIMEOUT, UNKNOWN_TYPE
from asyncjob_operator.core.policies.deduplication import DUPLICATE
from asyncjob_operator.core.policies.finished import DISMISS, REDRIVE, RERUN
from asyncjob_operator.core.policies.gates import (
    ADMIT,
    HOLD,
    PROMOTE,
    WITHDRAW_UNRESERVED,
    WITHDRAW_UNSERVED,
)
from asyncjob_operator.core.policies.recovery import EXECUTION_TIMEOUT, RECOVER

POLICIES = {
    *(CANCEL, CASCADE, DEADLINE, START_DEADLINE, DUPLICATE, DEPENDENCY, HOLD, WITHDRAW_UNRESERVED),
    *(WITHDRAW_UNSERVED, ADMIT, PROMOTE, QUEUE_TIMEOUT, UNKNOWN_TYPE, RERUN, RECOVER),
    *(EXECUTION_TIMEOUT, DISMISS, REDRIVE),
}
PAGE = (Path(__file__).parents[3] / "docs/reference/operator.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]

PHASES = {*Phase, "Succeeded, Cancelled"}

OPTIONS = [option for option in run.params if isinstance(option, click.Option)]


def row(start: str) -> str:
    [found] = [line for line in ROWS if line.startswith(f"| `{start}`")]
    return found


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option.opts[0]))
def test_every_option_is_listed_with_its_variable_and_default(option: click.Option) -> None:
    line = row(option.opts[0])
    assert f"`{option.envvar}`" in line
    default = line.split("|")[3].strip()
    if isinstance(option.default, bool):
        assert default == ("on" if option.default else "off")
    elif isinstance(option.default, int | float):
        assert default == str(option.default)


def test_every_permission_is_listed_and_whether_nothing_works_without_it() -> None:
    everything = (*CORE, *SCHEDULES, *ARRAY_PERMISSIONS, *RECOVERY, *WORKERS, *STALE_WORKERS)
    for permission in (*everything, *election(OPERATOR_LEASE)):
        name = "/".join(filter(None, (permission.resource, permission.subresource)))
        rows = [line for line in ROWS if permission.verb in line and f"`{name}`" in line]
        found = [line for line in rows if ("does not work" in line) == permission.essential]
        assert found, permission


def test_policies_have_the_same_names_in_the_log_as_on_the_page() -> None:
    cells = [line.split("|")[2] for line in ROWS if line.split("|")[1].strip() in PHASES]
    listed = {name.strip() for cell in cells for name in re.sub(r"\(.*?\)", "", cell).split(",")}
    assert {name.replace(" ", "-") for name in listed} == POLICIES


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_listed_with_as_many_policies_as_it_has(phase: Phase) -> None:
    cells = [[cell.strip() for cell in line.split("|")] for line in ROWS]
    [policies] = [two for _, one, two, *_ in cells if phase.value in one.split(", ")]
    assert len(policies.split(", ")) == len(POLICY_CHAINS[phase])
