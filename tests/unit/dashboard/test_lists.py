from starlette.datastructures import QueryParams

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import Page
from asyncjob.rest.resources import QueueInfo
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.pages.jobs import JobList, make_job_list, with_queue_reason
from asyncjob_gateway.dashboard.views.filters import read_filters
from support.objects.rest_jobs import NOW, summary


def queue(paused: bool = False, workers: int = 1) -> dict[str, QueueInfo]:
    info = QueueInfo(
        name="mail", namespace="ns", configured=True, paused=paused, counts={}, workers=workers
    )
    return {"mail": info}


def listed(page: Page, query: str = "", cursor: str = "") -> JobList:
    filters = read_filters(QueryParams(query))
    return make_job_list(page, filters, Links("team"), NOW, path="/jobs", cursor=cursor)


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


def test_a_list_says_what_it_lists() -> None:
    page, filters = Page(items=[summary()], total=2, next="c"), read_filters(QueryParams(""))

    view = make_job_list(
        page, filters, Links(), NOW, path="/dead-letters", cursor="", what="dead letter"
    )

    assert view.count == "newest 1 of 2 dead letters"


def test_a_queued_job_of_a_list_says_what_it_waits_for_by_its_queue() -> None:
    job = summary(message="it waits for a free slot")

    assert with_queue_reason(job, queue(paused=True)).message == "queue mail is paused"
    assert with_queue_reason(job, queue(workers=0)).message == "no live worker serves queue mail"
    assert with_queue_reason(job, queue()) is job
    assert with_queue_reason(job, {}) is job
    running, named = summary(phase=Phase.RUNNING), summary(reason="CancelRequested")
    assert [with_queue_reason(one, queue(paused=True)) for one in (running, named)] == [
        running,
        named,
    ]
