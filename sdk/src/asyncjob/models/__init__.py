"""The resources as pydantic models: the single source of CRDs, REST schema and docs tables."""

from asyncjob.models.array import AsyncArray, AsyncArraySpec, AsyncArrayStatus
from asyncjob.models.base import ObjectMeta, RetryPolicy
from asyncjob.models.cron import AsyncCronJob, AsyncCronJobSpec, AsyncCronJobStatus
from asyncjob.models.job import AsyncJob, AsyncJobSpec
from asyncjob.models.job_status import AsyncJobStatus
from asyncjob.models.queue import AsyncQueue, AsyncQueueSpec, AsyncQueueStatus

__all__ = [
    "AsyncArray",
    "AsyncArraySpec",
    "AsyncArrayStatus",
    "AsyncCronJob",
    "AsyncCronJobSpec",
    "AsyncCronJobStatus",
    "AsyncJob",
    "AsyncJobSpec",
    "AsyncJobStatus",
    "AsyncQueue",
    "AsyncQueueSpec",
    "AsyncQueueStatus",
    "ObjectMeta",
    "RetryPolicy",
]
