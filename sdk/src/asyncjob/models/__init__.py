"""The resources as pydantic models: the single source of CRDs, REST schema and docs tables."""

from asyncjob.models.cron import AsyncCronJob, AsyncCronJobSpec, AsyncCronJobStatus
from asyncjob.models.job import AsyncJob
from asyncjob.models.meta import ObjectMeta
from asyncjob.models.queue import AsyncQueue, AsyncQueueSpec, AsyncQueueStatus
from asyncjob.models.retry_policy import RetryPolicy
from asyncjob.models.spec import AsyncJobSpec
from asyncjob.models.status import AsyncJobStatus

__all__ = [
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
