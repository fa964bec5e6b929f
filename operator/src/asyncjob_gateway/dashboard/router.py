"""All pages."""

from fastapi import APIRouter

from asyncjob_gateway.dashboard.pages import (
    actions,
    arrays,
    cron_jobs,
    dead_letters,
    events,
    jobs,
    queues,
    sign_in,
    site,
    submit,
    workers,
)

router = APIRouter(include_in_schema=False)
for _page in (
    *(sign_in, queues, jobs, dead_letters, actions, arrays, cron_jobs, workers, submit, events),
    site,  # the last: it answers what is left
):
    for _router in _page.ROUTERS:
        router.include_router(_router)
