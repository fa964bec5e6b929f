"""What traces attempts: nothing, unless the app or the environment asks for spans."""

from collections.abc import Mapping
from typing import Final

from asyncjob.tracing.provider import set_up_tracing
from asyncjob_worker.tracing.trace import NO_TRACING, Tracing

SERVICE_NAME: Final = "asyncjob-worker"
"""Of the service, and of the distribution with the extra `tracing`."""


def tracing_of(environ: Mapping[str, str]) -> Tracing:
    """Return what traces attempts; raises ConfigError for what cannot be done.

    Call it once the app is loaded, for it may have set up a provider.
    """
    close = set_up_tracing(environ, SERVICE_NAME, SERVICE_NAME)
    if close is None:
        return NO_TRACING
    from asyncjob_worker.tracing.spans import OpenTelemetryTracing

    return OpenTelemetryTracing(close)
