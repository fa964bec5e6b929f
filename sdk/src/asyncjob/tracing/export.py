"""A provider of OpenTelemetry's own SDK that exports by OTLP. Imported only if one is wanted."""

import threading
from collections.abc import Callable
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

CLOSE_SECONDS: Final = 2.0
"""A collector that is away must not keep a process from ending."""


def start_exporter(service: str) -> Callable[[], None]:
    """Set up the provider of this process; returns what ends it. `service` may be empty."""
    resource = Resource.create({SERVICE_NAME: service} if service else None)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

    def close() -> None:
        ending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)

    return close
