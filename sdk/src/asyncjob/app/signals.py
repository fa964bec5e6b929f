"""What a handler raises to say how its attempt ends."""

import math

from asyncjob.app.categories import Category


class Retry(Exception):  # noqa: N818  # a signal, read as a verb: `raise Retry(after=30)`
    """Try again later, whatever the policy says about the category; it spends a retry.

    `after` is in seconds; None takes the policy's backoff. `category` is what `status.error` shows,
    None that of the exception it was raised from.
    """

    def __init__(
        self,
        message: str = "the handler asked for a retry",
        *,
        after: float | None = None,
        category: str | None = None,
    ) -> None:
        super().__init__(message)
        self.category = category
        self.after = after if after is None or math.isfinite(after) else None


class Fail(Exception):  # noqa: N818  # a signal, read as a verb: `raise Fail("no such user")`
    """Give up at once: the job becomes a dead letter without further retries."""

    def __init__(self, message: str, *, category: str = Category.INTERNAL) -> None:
        super().__init__(message)
        self.category = category
