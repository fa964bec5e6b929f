"""All pages."""

from fastapi import APIRouter

from asyncjob_gateway.dashboard.routes import (
    actions,
    cron_jobs,
    dead_letters,
    elsewhere,
    events,
    jobs,
    queues,
    signing,
    submit,
    workers,
)

router = APIRouter(include_in_schema=False)
for _page in (
    *(signing, queues, jobs, dead_letters, actions, cron_jobs, workers, submit, events),
    elsewhere,  # the last: it answers what is left
):
    for _router in _page.ROUTERS:
        router.include_router(_router)
