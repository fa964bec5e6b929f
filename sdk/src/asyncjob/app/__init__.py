"""What handler authors use: the app, the context of a job, and the words to end an attempt."""

from asyncjob.extras import needs

with needs("handlers"):
    from asyncjob.app.child_handles import Child, ChildSubmission
    from asyncjob.app.child_jobs import ChildView, ItemCounts
    from asyncjob.app.context import JobContext, JobInfo, JobParent
    from asyncjob.app.errors import (
        AttemptOverError,
        ChildFailedError,
        ChildGoneError,
        Fail,
        Retry,
        SignalInvalid,
        SignalTimeout,
        StepError,
        StepRefusedError,
        SubmitConflictError,
        SubmitError,
        SubmitForbiddenError,
        SubmitRefusedError,
    )
    from asyncjob.app.events import Event, JobEnded, JobEvent, WorkerEvent
    from asyncjob.app.handler import CallNext, Handler, HandlerError, Isolation
    from asyncjob.app.items import ItemContext
    from asyncjob.app.resource_lifecycle import ResourceError, open_resources
    from asyncjob.app.resources import Resources
    from asyncjob.app.steps import StepCall
    from asyncjob.app.waits import SignalCall
    from asyncjob.app.worker_app import WorkerApp
    from asyncjob.lifecycle.policy import Category

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
    "ItemContext",
    "ItemCounts",
    "JobContext",
    "JobEnded",
    "JobEvent",
    "JobInfo",
    "JobParent",
    "ResourceError",
    "Resources",
    "Retry",
    "SignalCall",
    "SignalInvalid",
    "SignalTimeout",
    "StepCall",
    "StepError",
    "StepRefusedError",
    "SubmitConflictError",
    "SubmitError",
    "SubmitForbiddenError",
    "SubmitRefusedError",
    "WorkerApp",
    "WorkerEvent",
    "open_resources",
]
