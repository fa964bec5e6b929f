"""Generated lives of resources: a few seeds here, fresh ones by `make simulate-resources`."""

from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.names import ARRAYS as ARRAY_PLURAL
from asyncjob.names import CRON_JOBS, QUEUES
from asyncjob_operator.core.admission import plan
from asyncjob_operator.core.arrays import decide
from asyncjob_simulation.array_lives import LEFT_OUT
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.resource_lives import KINDS, LifeKind, end_of, try_seed
from asyncjob_simulation.schema_values import made_value, spec_schema

SEEDS = 2
*_, ARRAYS = KINDS

LIMITED = 1
"""A seed whose queue is limited in the end."""

RATED = 4203377566
"""A seed whose queue has a rate in the end, and where other jobs come first than without a past."""

CANCELLED_WITH_A_REDRIVE = 641065918
"""A seed whose array has failed, then is asked for a redrive and a cancel at the same time."""


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


def test_an_array_that_is_cancelled_with_its_redrive_runs_nothing() -> None:
    assert not try_seed(ARRAYS, CANCELLED_WITH_A_REDRIVE)


def end_of_array(*changes: dict[str, Any]) -> list[str]:
    """Return what is wrong with the end of an array that is changed while its items run."""
    spec = {
        "type": "tally",
        "queue": "lived",
        "items": {"count": 12},
        "chunkSize": 1,
        "itemRetries": 0,
        "payload": {"pause": 25.0, "failing": [2], "killing": []},
    }
    end = end_of(ARRAYS, [spec, *changes], seed=1)
    return [what for what, *_ in ARRAYS.promises(end["taken"], end)]


SUSPENDED = {"suspend": True}
"""With it an array of twelve chunks stands still, of which three have run by then."""

CHANGED: tuple[dict[str, Any], ...] = ({}, {}, {}, {}, {}, {"redrive": 1}, {"redrive": 2})
"""When an array has failed, a redrive is taken, and nothing is that comes before it has run."""


def test_an_array_that_goes_on_though_it_is_suspended_is_found() -> None:
    assert end_of_array(SUSPENDED) == []
    with patch.object(decide, "due_control", lambda _: ((), {})):
        assert end_of_array(SUSPENDED) == ["a suspended array goes on"]


def test_a_redrive_that_runs_nothing_is_found() -> None:
    assert end_of_array(*CHANGED) == []
    forgets = partial(replace, reason=ArrayReason.REDRIVE_REFUSED)
    with patch.object(decide, "redrive", lambda one: forgets(one.state, redrives=one.redrive)):
        assert end_of_array(*CHANGED) == [
            "another end: reason",
            "a redrive after which nothing was run",
        ]


def test_an_array_is_asked_for_a_change_of_every_field_that_schemas_tell() -> None:
    asked = [ARRAYS.make(Dice(seed), 1) for seed in range(60)]
    assert {field for one in asked for field in one} == {
        *(spec_schema(ARRAY_PLURAL)["properties"].keys() - set(LEFT_OUT))
    }


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
