"""Generated lives of resources: a few seeds here, fresh ones by `make simulate-resources`."""

from typing import Any
from unittest.mock import patch

import pytest

from asyncjob.names import CRON_JOBS, QUEUES
from asyncjob_operator.core.admission import plan
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.resource_lives import KINDS, LifeKind, try_seed
from asyncjob_simulation.schema_values import made_value, spec_schema

SEEDS = 2

LIMITED = 1
"""A seed whose queue is limited in the end."""

RATED = 4203377566
"""A seed whose queue has a rate in the end, and where other jobs come first than without a past."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_resource_comes_to_what_its_last_spec_says_whatever_it_was_before(kind: LifeKind) -> None:
    found = [one for seed in range(SEEDS) for one in try_seed(kind, seed)]
    assert not found, "\n".join(line for one in found for line in one.lines())


def test_a_limit_that_is_not_kept_is_found() -> None:
    free = plan._free_capacity
    [queues, *_] = KINDS
    with patch.object(plan, "_free_capacity", lambda *given: free(*given) + 1):
        assert [one.what for one in try_seed(queues, LIMITED)] == ["too many jobs ran at once"]


def test_how_many_run_at_once_under_a_rate_is_nobodys_promise() -> None:
    assert not try_seed(KINDS[0], RATED)


def test_values_are_what_the_schema_allows() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["count"],
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 7},
            "kind": {"type": "string", "enum": ["A", "B"]},
            "many": {"type": "array", "maxItems": 1, "items": {"type": "boolean"}},
        },
    }
    for seed in range(50):
        made = made_value(schema, Dice(seed), "it", {})
        assert 1 <= made["count"] <= 7
        assert made.get("kind") in {None, "A", "B"}
        assert len(made.get("many", ())) <= 1


def test_values_that_a_schema_does_not_tell_are_taken_from_those_given() -> None:
    schema = spec_schema(CRON_JOBS)
    made = [
        made_value(schema["properties"]["schedule"], Dice(seed), "it.schedule", {"schedule": "ab"})
        for seed in range(20)
    ]
    assert {*made} == {"a", "b"}


def test_every_field_of_a_queue_is_made_by_some_seed() -> None:
    schema = spec_schema(QUEUES)
    made: set[str] = set()
    for seed in range(60):
        made |= made_value(schema, Dice(seed), "queue", {}).keys()
    assert made == schema["properties"].keys()
