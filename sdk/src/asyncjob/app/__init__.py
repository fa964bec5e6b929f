"""What handler authors use: the app, the context of a job, and the words to end an attempt."""

from asyncjob.app.categories import Category
from asyncjob.app.child_errors import (
    AttemptOverError,
    ChildFailedError,
    ChildGoneError,
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.app.child_view import ChildView
from asyncjob.app.children import Child, ChildSubmission
from asyncjob.app.context import JobContext
from asyncjob.app.events import Event, JobEnded, JobEvent, WorkerEvent
from asyncjob.app.handler import Handler, HandlerError, Isolation
from asyncjob.app.job_info import JobInfo, JobParent
from asyncjob.app.middleware import CallNext
from asyncjob.app.opening import ResourceError, open_resources
from asyncjob.app.resources import Resources
from asyncjob.app.signals import Fail, Retry
from asyncjob.app.worker_app import WorkerApp

__all__ = [
    "AttemptOverError",
    "CallNext",
    "Category",
    "Child",
    "ChildFailedError",
    "ChildGoneError",
    "ChildSubmission",
    "ChildView",
    "Event",
    "Fail",
    "Handler",
    "HandlerError",
    "Isolation",
    "JobContext",
    "JobEnded",
    "JobEvent",
    "JobInfo",
    "JobParent",
    "ResourceError",
    "Resources",
    "Retry",
    "SubmitConflictError",
    "SubmitError",
    "SubmitForbiddenError",
    "SubmitRefusedError",
    "WorkerApp",
    "WorkerEvent",
    "open_resources",
]
