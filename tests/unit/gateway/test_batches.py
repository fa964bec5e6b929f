"""A batch is done side by side, but for jobs that share a name, a key or an id."""

import asyncio

import pytest

from asyncjob.rest.submission import Submission, Submitted
from asyncjob_gateway.operations import BATCH_CONCURRENCY, submit_all


class Store:
    """Takes each name once; the first ones take longest, so that order is no accident."""

    def __init__(self) -> None:
        self.begun: list[object] = []
        self.at_once = self.most = 0

    async def submit(self, submission: Submission) -> Submitted:
        """Create the job."""
        self.begun.append(submission.payload)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        for _ in range(50 - len(self.begun)):
            await asyncio.sleep(0)
        self.at_once -= 1
        return Submitted(id=str(submission.payload), created=True, phase="Queued")


@pytest.mark.parametrize(
    "same",
    [{"name": "one"}, {"idempotencyKey": "k"}, {"deduplicationId": "d"}],
    ids=lambda same: next(iter(same)),
)
async def test_jobs_that_share_an_identity_are_done_in_their_order(same: dict[str, str]) -> None:
    store = Store()
    report = await submit_all(
        [{"type": "echo", "payload": number, **same} for number in range(30)], store.submit
    )
    assert store.begun == list(range(30))
    assert store.most == 1
    assert [item.job.id for item in report.items if item.job] == [str(n) for n in range(30)]


async def test_others_are_done_side_by_side_within_bounds() -> None:
    store = Store()
    report = await submit_all(
        [{"type": "echo", "payload": number} for number in range(40)], store.submit
    )
    assert store.most == BATCH_CONCURRENCY
    assert (report.accepted, report.refused) == (40, 0)


async def test_one_that_cannot_be_read_is_refused_by_itself() -> None:
    report = await submit_all([{"type": "echo"}, {"typo": 1}], Store().submit)
    assert (report.accepted, report.refused) == (1, 1)
    refused = report.items[1].error
    assert refused is not None
    assert refused.status == 422
    assert "jobs.1.type" in refused.detail
