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
from asyncjob_worker.isolation.messages import Word, word
from asyncjob_worker.isolation.questions import List, Question, Submit, Wait

_Future = concurrent.futures.Future[Any]


class Desk:
    """Takes the questions of one handler's run to whoever submits; `write` sends frames back."""

    def __init__(self, context: JobContext, write: Callable[[bytes], None]) -> None:
        self._context = context
        self._jobs = context.child_jobs
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, tuple[Question, _Future]] = {}

    def take(self, message: JsonObject) -> None:
        """Begin with a question, or give it up."""
        number = questions.read_number(message)
        if word(message) == Word.FORGET:
            self._give_up(number)
        else:
            self._begin(number, questions.read_question(message))

    def close(self) -> None:
        """Give no more answers: the child may be at another job.

        What is still being submitted goes on, as it would for a handler of the worker's own.
        """
        for number, (question, future) in list(self._open.items()):
            if isinstance(question, Submit):
                self._context.adopt(question.order.name, future)
            else:
                self._give_up(number)
        self._open.clear()

    def _begin(self, number: int, question: Question) -> None:
        try:
            future = self._ask(question)
        except AsyncJobError as error:
            self._write(encode(questions.failure(number, error)))
            return
        self._open[number] = question, future
        future.add_done_callback(partial(self._hand_back, number))

    def _ask(self, question: Question) -> _Future:
        match question:
            case Submit(order):
                return self._jobs.submit(order)
            case Wait(child, timeout):
                return self._jobs.wait(child, timeout)
            case List():
                return self._jobs.list()

    def _give_up(self, number: int) -> None:
        if number in self._open:
            _, future = self._open.pop(number)
            future.cancel()

    def _hand_back(self, number: int, future: _Future) -> None:
        self._loop.call_soon_threadsafe(self._answer, number, future)

    def _answer(self, number: int, future: _Future) -> None:
        """Send what has come; nothing where it was cancelled: the child is told to stop by then."""
        if self._open.pop(number, None) is None or future.cancelled():
            return
        self._write(_frame(number, future))


def _frame(number: int, future: _Future) -> bytes:
    error = future.exception()
    if error is not None:
        return encode(questions.failure(number, error))
    try:
        return encode(questions.answer(number, questions.plain(future.result())))
    except FrameTooLargeError as too_large:
        told = SubmitError(f"the answer about child jobs: {too_large}")
        return encode(questions.failure(number, told))
