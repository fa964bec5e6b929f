import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.listing import BulkFailure, BulkReport, Selection
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.pages.dead_letters import (
    MAX_BULK_JOBS,
    BulkForm,
    bulk_report_page,
    confirmation_page,
    read_bulk_form,
)


def asked(**form: list[str]) -> BulkForm:
    read = read_bulk_form(form)
    assert read
    return read


def test_selected_ones_are_meant_each_once() -> None:
    read = asked(action=["redrive"], id=["a", "b", "a", ""])

    assert (read.action, read.all, read.ids) == ("redrive", False, ("a", "b"))


def test_all_means_the_dead_letters_that_match_the_filters() -> None:
    read = asked(action=["dismiss-all"], filters=["text=boom&phase=Running"], id=["a"])

    assert (read.action, read.all, read.ids) == ("dismiss", True, ())
    assert read.selection == Selection(text="boom", phase=[Phase.DEAD_LETTER])


def test_nothing_selected_wrong_filters_and_unknown_actions_ask_for_nothing() -> None:
    assert read_bulk_form({"action": ["redrive"]}) is None
    assert read_bulk_form({"action": ["redrive-all"], "filters": ["newer=soon"]}) is None
    assert read_bulk_form({"action": ["delete"], "id": ["a"]}) is None


def test_no_more_are_touched_than_were_confirmed_and_never_more_than_a_request_has_time_for() -> (
    None
):
    assert asked(action=["redrive-all"], limit=["7"]).limit == 7
    assert asked(action=["redrive-all"], limit=["999999"]).limit == MAX_BULK_JOBS
    assert asked(action=["redrive-all"], limit=["x"]).limit == MAX_BULK_JOBS
    many = [str(number) for number in range(MAX_BULK_JOBS + 5)]
    assert len(asked(action=["redrive"], id=many).ids) == MAX_BULK_JOBS


def test_the_question_says_how_many() -> None:
    found = BulkReport(matched=5000, done=[str(number) for number in range(1000)], dry_run=True)

    view = confirmation_page(asked(action=["redrive-all"]), found, Links())

    assert view.question == "Redrive 1,000 dead letters?"
    assert (view.count, view.matched, view.unnamed) == (1000, 5000, 980)


def test_the_report_says_what_became_of_each() -> None:
    failed = [BulkFailure(id="c", detail="job c is Running")]
    done = BulkReport(matched=10, done=["a", "b"], failed=failed)

    view = bulk_report_page(asked(action=["dismiss-all"], filters=["text=x"]), done, Links())

    assert view.title == "2 dead letters dismissed, 1 not"
    assert view.failed == [("c", "/dashboard/jobs/c", "job c is Running")]
    assert view.left == 7
    assert view.back == "/dashboard/dead-letters?text=x"


@pytest.mark.parametrize("limit", ["", "0", "-5", "9" * 5000, "all", "\u0661\u0660"])
def test_a_limit_that_is_none_means_as_many_as_a_request_has_time_for(limit: str) -> None:
    assert asked(action=["redrive-all"], limit=[limit]).limit == MAX_BULK_JOBS
