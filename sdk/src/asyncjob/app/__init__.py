"""What handler authors use: the app, the context of a job, and the words to end an attempt."""

from asyncjob.app.categories import Category
from asyncjob.app.context import JobContext, JobInfo
from asyncjob.app.handler import Handler, HandlerError, Isolation
from asyncjob.app.signals import Fail, Retry
from asyncjob.app.worker_app import WorkerApp

__all__ = [
    "Category",
    "Fail",
    "Handler",
    "HandlerError",
    "Isolation",
    "JobContext",
    "JobInfo",
    "Retry",
    "WorkerApp",
]
