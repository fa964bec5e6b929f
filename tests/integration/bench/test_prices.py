"""What schema and rules cost, held by what the API server allocates: that hardly moves."""

from dataclasses import replace

import pytest

from asyncjob_bench import store
from asyncjob_bench.parts.part import SMALL
from asyncjob_bench.prices import UNCHANGED, VARIANTS, measure_variant
from asyncjob_bench.stats.limits import read_limits

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(300)]

SCALE = replace(SMALL, priced_jobs=400, warm_up=100)


def cost(variant: str) -> float:
    return measure_variant(VARIANTS[variant], SCALE)["KiB/job"]


def test_three_writes_cost_no_more_than_they_did_and_far_less_without_schema_and_rules() -> None:
    limits = {limit.key: limit for limit in read_limits(store.LIMITS, "counts")}
    limit = limits["api_server_kib_per_job"]
    installed = cost(UNCHANGED)
    assert limit.holds(installed), f"{installed:.0f} KiB per job; {limit.text}"
    assert cost("shapeless, with the policy of ownership alone") < 0.75 * installed
