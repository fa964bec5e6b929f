"""AsyncJob: one durable asynchronous job."""

from typing import Literal

from pydantic import Field

from asyncjob.models.base import Model
from asyncjob.models.meta import ObjectMeta
from asyncjob.models.spec import AsyncJobSpec
from asyncjob.models.status import AsyncJobStatus


class AsyncJob(Model):
    """A durable asynchronous job, run by a worker that knows its type."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncJob"] = "AsyncJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncJobSpec
    """What is to be done."""

    status: AsyncJobStatus = Field(default_factory=AsyncJobStatus)
    """What has become of it."""
