"""Arrays as the gateway keeps them: what lists show of them, their pages, and nothing large."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.rest.arrays import ArraySelection, array_of
from asyncjob_gateway.cache.entries import TrimmedArray
from asyncjob_gateway.cache.listing import array_page
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.errors import RefusedError
from support.objects.builders import array

LARGE = "x" * 100_000


def stored(
    name: str, *, age: int = 0, version: int = 1, phase: str = "Running", **spec: Any
) -> Any:
    """Return an array with large items, and all that a list shows; `age` in minutes."""
    obj = array(name, **{"items": {"inline": [LARGE, LARGE]}, "payload": LARGE, **spec})
    obj["metadata"] |= {
        "namespace": "ns",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": f"2026-01-01T00:{59 - age:02}:00Z",
        "labels": {"team": name[0]},
    }
    obj["status"] = {"phase": phase, "total": 2, "succeeded": 1, "percent": 50}
    return obj


def cache_of(*arrays: Any) -> NamespaceCache:
    made = NamespaceCache("ns")
    made._arrays.replace([TrimmedArray(one) for one in arrays])
    return made


def names(cache: NamespaceCache, **selection: Any) -> list[str]:
    chosen = ArraySelection.model_validate(selection)
    return [one.name for one in array_page(cache.arrays(), chosen, None, 50).items]


def test_a_list_shows_what_a_look_at_each_does_newest_first() -> None:
    objects = [stored("b", age=2), stored("a", age=1), stored("c", age=3)]
    page = array_page(cache_of(*objects).arrays(), ArraySelection(), None, 50)
    assert page.items == [array_of(objects[at]) for at in (1, 0, 2)]
    assert (page.next, page.total) == (None, 3)


def test_nothing_large_of_an_array_is_kept() -> None:
    kept = TrimmedArray(stored("a"))
    assert LARGE not in json.dumps(kept)
    assert kept.info
    assert LARGE not in kept.info.model_dump_json()


def test_filters_choose() -> None:
    cache = cache_of(
        stored("a", type="other"), stored("b", queue="mail"), stored("c", phase="Failed")
    )
    assert names(cache, type="other") == ["a"]
    assert names(cache, queue="mail") == ["b"]
    assert names(cache, phase=["Failed", "Cancelled"]) == ["c"]
    assert sorted(names(cache, label="team in (a,b)")) == ["a", "b"]
    assert names(cache, type="other", queue="mail") == []


def test_pages_neither_skip_nor_repeat_and_count_once() -> None:
    arrays = cache_of(*(stored(f"a{n}", age=n // 2) for n in range(7))).arrays()
    found, cursor = list[str](), None
    totals = []
    while True:
        page = array_page(arrays, ArraySelection(), cursor, 3)
        found += [one.name for one in page.items]
        totals.append(page.total)
        cursor = page.next
        if cursor is None:
            break
    assert sorted(found) == [f"a{n}" for n in range(7)]
    assert totals == [7, None, None]


def test_nonsense_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="cursor"):
        array_page([], ArraySelection(), "nonsense", 3)
    with pytest.raises(RefusedError, match="label selector"):
        array_page([], ArraySelection(label="a=b=c"), None, 3)


def test_an_array_of_a_phase_from_the_future_is_left_out_and_logged() -> None:
    with capture_logs() as logs:
        cache = cache_of(stored("a", phase="Resting"), stored("b"))
    assert names(cache) == ["b"]
    assert [one["event"] for one in logs] == ["array not readable"]


def test_a_change_of_ones_own_is_listed_at_once_and_an_older_one_does_not_undo_it() -> None:
    cache = cache_of(stored("a", version=5))
    cache.put_written(stored("a", version=6, suspend=True))
    assert cache.arrays()[0].suspended
    cache.put_written(stored("a", version=4))
    assert cache.arrays()[0].suspended
