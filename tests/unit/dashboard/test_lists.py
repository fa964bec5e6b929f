from starlette.datastructures import QueryParams

from asyncjob.rest.job import Page
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.dashboard.views.job_list import JobList, job_list
from support.rest_jobs import NOW, summary


def listed(page: Page, query: str = "", cursor: str = "") -> JobList:
    filters = read_filters(QueryParams(query))
    return job_list(page, filters, Links("team"), NOW, path="/jobs", cursor=cursor)


def test_the_next_page_keeps_the_filters() -> None:
    view = listed(Page(items=[summary()], next="c2", total=70), "text=a&phase=Queued")

    assert view.next == "/dashboard/jobs?namespace=team&text=a&phase=Queued&cursor=c2"
    assert view.newest == ""
    assert view.count == "newest 1 of 70 jobs"


def test_a_later_page_leads_back_to_the_newest() -> None:
    view = listed(Page(items=[summary(), summary("b")]), "text=a", "c2")

    assert view.newest == "/dashboard/jobs?namespace=team&text=a"
    assert view.next == ""
    assert view.count == "2 older jobs on this page"


def test_a_list_that_fits_one_page_says_how_many_there_are() -> None:
    assert listed(Page(items=[summary()], total=1)).count == "1 job"


def test_events_are_asked_for_with_the_same_filters() -> None:
    view = listed(Page(items=[], total=0), "queue=mail")

    assert view.events == "/dashboard/events?namespace=team&queue=mail"
    assert view.is_empty
