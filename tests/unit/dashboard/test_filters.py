from starlette.datastructures import QueryParams

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.listing import Selection
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.filters import read_filters


def test_an_address_becomes_a_selection_and_an_address_again() -> None:
    asked = "text=boom&type=report&label=a%3Db&cronJob=nightly&newer=2h&phase=Queued&phase=Running"

    filters = read_filters(QueryParams(asked))

    assert filters.selection == Selection(
        text="boom",
        type="report",
        label="a=b",
        cron_job="nightly",
        newer_than_seconds=7200,
        phase=[Phase.QUEUED, Phase.RUNNING],
    )
    assert QueryParams(Links().to("/jobs", filters.query).partition("?")[2]) == QueryParams(asked)


def test_without_filters_all_are_meant() -> None:
    filters = read_filters(QueryParams("cursor=abc&text="))

    assert filters.selection == Selection()
    assert not filters.any


def test_what_is_wrong_is_named_and_what_was_typed_is_kept() -> None:
    filters = read_filters(QueryParams("newer=soon&older=later&text=a"))

    assert filters.selection is None
    assert set(filters.errors) == {"newer", "older"}
    assert filters.given == {"newer": "soon", "older": "later", "text": "a"}


def test_a_wrong_value_is_told_at_its_field() -> None:
    assert set(read_filters(QueryParams("phase=Asleep")).errors) == {"phase"}
    assert set(read_filters(QueryParams(f"reason={'x' * 65}&cronJob={'y' * 300}")).errors) == {
        "reason",
        "cronJob",
    }


def test_the_dead_letter_page_shows_dead_letters_whatever_is_asked_for() -> None:
    filters = read_filters(QueryParams("phase=Running&text=a"), Phase.DEAD_LETTER)

    assert filters.selection == Selection(text="a", phase=[Phase.DEAD_LETTER])
    assert filters.phases == ()


def test_labels_that_select_nothing_are_told_at_their_field() -> None:
    filters = read_filters(QueryParams("label=team==(a&text=b"))

    assert filters.selection is None
    assert "label selector" in filters.errors["label"]
    assert read_filters(QueryParams("label=team+in+(a,b),!old")).selection
