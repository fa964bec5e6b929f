"""What the list of arrays and the page of one say."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.models.array import AsyncArraySpec, AsyncArrayStatus
from asyncjob.rest.arrays import ArrayInfo, ArrayPage
from asyncjob_gateway.dashboard.links import Links, page_path_of_form
from asyncjob_gateway.dashboard.permissions import Permissions
from asyncjob_gateway.dashboard.views.arrays import (
    ENDED_REFRESH_SECONDS,
    MAX_RANGE_CHARACTERS,
    REFRESH_SECONDS,
    ArrayDetail,
    make_array_list,
    make_array_page,
)
from support.objects.rest_jobs import NOW, before

LINKS = Links("team")
MAY = Permissions(list_jobs=True, read_payload=True, control_arrays=True)
SPEC: dict[str, Any] = {"type": "thumb", "items": {"count": 1000}}


def array(phase: str = "Running", **fields: Any) -> ArrayInfo:
    """Build an array; fields by the names of Python or of JSON."""
    base: dict[str, Any] = {
        "name": "thumbs",
        "namespace": "team",
        "uid": "u1",
        "type": "thumb",
        "queue": "images",
        "phase": phase,
        "total": 1000,
        "created_at": before(200),
        "started_at": before(100),
    }
    return ArrayInfo.model_validate({**base, **fields})


def shown(one: ArrayInfo, allowed: Permissions = MAY) -> ArrayDetail:
    return make_array_page(one, allowed, LINKS, NOW)


def test_a_row_says_how_far_it_is_how_fast_and_how_long_it_takes() -> None:
    page = ArrayPage(items=[array(succeeded=390, failed=10, percent=40)], next="c", total=7)
    view = make_array_list(page, LINKS, NOW, cursor="")
    (row,) = view.rows
    assert (row.percent, row.rate, row.left) == (40, "4 items/s", "2 min 30 s")
    assert row.url == "/dashboard/arrays/thumbs?namespace=team"
    assert (view.count, view.newest) == ("newest 1 of 7 arrays", "")
    assert view.next == "/dashboard/arrays?namespace=team&cursor=c"


@pytest.mark.parametrize(("done", "rate"), [(0, ""), (5, "0.05 items/s"), (1000, "10 items/s")])
def test_a_rate_has_two_digits_or_no_decimals(done: int, rate: str) -> None:
    page = ArrayPage(items=[array(succeeded=done)], total=1)
    (row,) = make_array_list(page, LINKS, NOW, cursor="").rows
    assert row.rate == rate


def test_a_later_page_leads_back_to_the_newest() -> None:
    view = make_array_list(ArrayPage(items=[array(), array()]), LINKS, NOW, cursor="c")
    assert (view.count, view.next) == ("2 older arrays on this page", "")
    assert view.newest == "/dashboard/arrays?namespace=team"
    assert make_array_list(ArrayPage(items=[], total=0), LINKS, NOW, cursor="").count == "0 arrays"


@pytest.mark.parametrize(
    ("one", "offered"),
    [
        pytest.param(array(), {"cancel", "suspend"}, id="running"),
        pytest.param(array("Pending", suspended=True), {"cancel", "resume"}, id="suspended"),
        pytest.param(array(cancelling=True), set(), id="is being cancelled"),
        pytest.param(array("Failed"), {"redrive"}, id="failed"),
        pytest.param(array("Failed", redriving=True), {"cancel", "suspend"}, id="redriven"),
        pytest.param(array("Succeeded"), set(), id="succeeded"),
        pytest.param(array("Cancelled"), set(), id="cancelled"),
    ],
)
def test_what_may_be_asked_of_it_is_offered(one: ArrayInfo, offered: set[str]) -> None:
    names = ("cancel", "suspend", "resume", "redrive")
    offers = shown(one).offers
    assert {name for name in names if getattr(offers, name)} == offered
    assert offers.any == bool(offered)
    assert not shown(one, replace(MAY, control_arrays=False)).offers.any


@pytest.mark.parametrize(
    ("one", "seconds"),
    [
        (array(), REFRESH_SECONDS),
        (array("Failed", redriving=True), REFRESH_SECONDS),
        (array("Failed"), ENDED_REFRESH_SECONDS),
        (array("Succeeded"), ENDED_REFRESH_SECONDS),
    ],
)
def test_a_page_is_fetched_again_often_while_something_is_to_happen(
    one: ArrayInfo, seconds: int
) -> None:
    assert shown(one).refresh_seconds == seconds


def test_its_chunks_are_jobs_that_one_may_list() -> None:
    url = "/dashboard/jobs?namespace=team&type=thumb%2Fitems&label=asyncjob.dev%2Farray-uid%3Du1"
    assert shown(array()).chunks_url == url
    assert shown(array(), replace(MAY, list_jobs=False)).chunks_url == ""


def test_items_are_named_by_state_as_far_as_there_is_room() -> None:
    failed = ",".join(str(number) for number in range(1, 1000, 2))
    status = AsyncArrayStatus(failed_items=failed, failed_unlisted=4, next=1000)
    view = shown(array(succeeded=500, failed=500, status=status))
    by_state = {one.state: one for one in view.states}
    assert by_state["failed"].count == 500
    cut = by_state["failed"].items
    assert failed.startswith(f"{cut.removesuffix(', …')},")
    assert MAX_RANGE_CHARACTERS - 4 <= len(cut) <= MAX_RANGE_CHARACTERS + 3
    assert view.unlisted == 4
    status = AsyncArrayStatus(failed_items="4,9", next=1000)
    few = shown(array(succeeded=998, failed=2, status=status))
    assert {one.state: one.items for one in few.states}["failed"] == "4,9"


def test_where_the_results_are_is_a_fact_and_chunks_are_of_the_type_that_stores_them() -> None:
    one = array(results="s3://b/results/team/u1", spec=AsyncArraySpec.model_validate(SPEC))
    view = shown(one)
    assert {fact.name: fact.value for fact in view.facts}["Results in"] == "s3://b/results/team/u1"
    assert "type=thumb%2Fstore" in view.chunks_url
    without = shown(array(spec=AsyncArraySpec.model_validate(SPEC)))
    assert "Results in" not in {fact.name for fact in without.facts}
    assert "type=thumb%2Fitems" in without.chunks_url


@pytest.mark.parametrize(
    ("chosen", "next_one", "said"),
    [(5000, None, "5,000"), (None, 6400, "6,400, adapts"), (None, None, "adapts")],
)
def test_how_many_items_a_chunk_has_is_a_fact(
    chosen: int | None, next_one: int | None, said: str
) -> None:
    spec, status = {**SPEC, "chunkSize": chosen}, {"chunkSize": next_one}
    facts = {fact.name: fact.value for fact in shown(array(spec=spec, status=status)).facts}
    assert facts["Items in a chunk"] == said


def test_it_is_said_how_many_items_were_done_before() -> None:
    facts = {fact.name: fact.value for fact in shown(array(spec=SPEC, skipped=1)).facts}
    assert facts["Done before"] == "1 item, counted and not run"
    assert "Done before" not in {fact.name for fact in shown(array(spec=SPEC)).facts}


def test_facts_and_payload_are_those_of_the_spec() -> None:
    spec = AsyncArraySpec.model_validate(
        {**SPEC, "payload": {"width": 320}, "maxFailedPercent": 5, "priority": 3}
    )
    view = shown(array(spec=spec, labels={"team": "mail"}))
    facts = {fact.name: fact.value for fact in view.facts}
    assert facts["Items that may fail"] == "5 %"
    assert (facts["Priority"], facts["Queue"]) == ("3", "images")
    assert '"width": 320' in view.payload
    assert [fact.name for fact in view.labels] == ["team"]
    assert view.took == ""
    assert shown(array("Succeeded", completed_at=before(40))).took == "1 min"


def test_the_address_of_a_form_leads_back_to_its_page() -> None:
    assert page_path_of_form("/arrays/thumbs/cancel") == "/arrays/thumbs"


def test_what_an_array_waits_for_is_linked() -> None:
    needs = [{"name": "fetch"}, {"array": "resize"}]
    spec = {**SPEC, "dependsOn": needs, "notBefore": before(-60)}
    facts = [fact for fact in shown(array(spec=spec)).facts if fact.name == "Depends on"]
    assert [(fact.value, fact.url) for fact in facts] == [
        ("fetch", LINKS.job("fetch")),
        ("array resize", LINKS.array("resize")),
    ]
    assert any(fact.name == "Not before" and fact.time for fact in shown(array(spec=spec)).facts)
