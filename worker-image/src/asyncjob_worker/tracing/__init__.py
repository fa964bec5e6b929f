"""Spans of claims and attempts, where somebody wants them; else OpenTelemetry is not even loaded.

Off unless the standard `OTEL_*` variables name an exporter, or the app has set up a provider.
"""

from asyncjob_worker.tracing.provider import tracing_of
from asyncjob_worker.tracing.trace import NO_TRACING, AttemptTrace, Tracing

__all__ = ["NO_TRACING", "AttemptTrace", "Tracing", "tracing_of"]
