"""Answers, in the worker, what a handler in a child asks about its job's children."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from functools import partial
from typing import Any

from asyncjob.app import JobContext
from asyncjob.app.child_errors import SubmitError
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob_worker.isolation import questions
from asyncjob_worker.isolation.frames import FrameTooLargeError, encode
from asyncjob_worker.isolation.messages import MessageType, message_type
from asyncjob_worker.isolation.questions import (
    ChildJobRequest,
    ListRequest,
    SubmitRequest,
    WaitRequest,
)

_Future = concurrent.futures.Future[Any]


class ChildJobServer:
    """Takes the questions of one handler's run to whoever submits; `write` sends frames back."""

    def __init__(self, context: JobContext, write: Callable[[bytes], None]) -> None:
        self._context = context
        self._jobs = context.child_jobs
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, tuple[ChildJobRequest, _Future]] = {}

    def handle(self, message: JsonObject) -> None:
        """Begin with a question, or give it up."""
        number = questions.read_number(message)
        if message_type(message) == MessageType.FORGET:
            self._cancel(number)
        else:
            self._start(number, questions.read_request(message))

    def close(self) -> None:
        """Give no more answers: the child may be at another job.

        What is still being submitted goes on, as it would for a handler of the worker's own.
        """
        for number, (question, future) in list(self._pending.items()):
            if isinstance(question, SubmitRequest):
                self._context.track_submission(question.order.name, future)
            else:
                self._cancel(number)
        self._pending.clear()

    def _start(self, number: int, request: ChildJobRequest) -> None:
        try:
            future = self._call(request)
        except AsyncJobError as error:
            self._write(encode(questions.error_message(number, error)))
            return
        self._pending[number] = request, future
        future.add_done_callback(partial(self._on_done, number))

    def _call(self, request: ChildJobRequest) -> _Future:
        match request:
            case SubmitRequest(order):
                return self._jobs.submit(order)
            case WaitRequest(child, timeout):
                return self._jobs.wait(child, timeout)
            case ListRequest():
                return self._jobs.list()

    def _cancel(self, number: int) -> None:
        if number in self._pending:
            _, future = self._pending.pop(number)
            future.cancel()

    def _on_done(self, number: int, future: _Future) -> None:
        self._loop.call_soon_threadsafe(self._answer, number, future)

    def _answer(self, number: int, future: _Future) -> None:
        """Send what has come; nothing where it was cancelled: the child is told to stop by then."""
        if self._pending.pop(number, None) is None or future.cancelled():
            return
        self._write(_answer_frame(number, future))


def _answer_frame(number: int, future: _Future) -> bytes:
    error = future.exception()
    if error is not None:
        return encode(questions.error_message(number, error))
    try:
        return encode(questions.answer_message(number, questions.answer_value(future.result())))
    except FrameTooLargeError as too_large:
        told = SubmitError(f"the answer about child jobs: {too_large}")
        return encode(questions.error_message(number, told))
