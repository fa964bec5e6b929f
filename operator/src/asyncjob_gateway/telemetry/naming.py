"""Names job and trace in whatever is logged for a request from then on, its access line included.

What is named for one request is forgotten with it: `Observed` clears it before the next.
"""

import structlog

from asyncjob.tracing.context import trace_id_of


def bind_log_context(*, job: str | None = None, trace: str | None = None) -> None:
    """Name what is given; `trace` is a `traceparent`."""
    named = {"job": job, "trace_id": trace_id_of(trace)}
    structlog.contextvars.bind_contextvars(**{key: text for key, text in named.items() if text})
