"""Who exports spans: the provider that the app has set up, else one as the environment asks.

By the standard variables. Those that are not looked at here, such as `OTEL_TRACES_SAMPLER`, are
read by OpenTelemetry itself.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from asyncjob.errors import ConfigError
from asyncjob_worker.tracing.trace import NO_TRACING, Tracing

SERVICE: Final = "asyncjob-worker"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
_INSTALL: Final = "install asyncjob-worker[tracing], or set OTEL_TRACES_EXPORTER=none"


def tracing_of(environ: Mapping[str, str]) -> Tracing:
    """Return what traces attempts; raises ConfigError for what cannot be done.

    Call it once the app is loaded, for it may have set up a provider.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NO_TRACING
    if _has_provider():
        from asyncjob_worker.tracing.spans import Spans

        return Spans()
    if not wants_export(environ):
        return NO_TRACING
    return _exporting(environ)


def wants_export(environ: Mapping[str, str]) -> bool:
    """Return whether the environment asks for spans; raises ConfigError for what is not known."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporter not in {"", "otlp", "none"}:
        raise ConfigError(f"OTEL_TRACES_EXPORTER={exporter} is not known here: otlp or none")
    wanted = exporter == "otlp" or (not exporter and any(map(environ.get, _ENDPOINTS)))
    protocol = next(filter(None, map(environ.get, _PROTOCOLS)), _PROTOCOL)
    if wanted and protocol != _PROTOCOL:
        raise ConfigError(
            f"spans are exported by {_PROTOCOL} only, not by {protocol}: {_PROTOCOLS}"
        )
    return wanted


def _has_provider() -> bool:
    """Return whether the app has set up a provider; loads nothing."""
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider
    )


def _exporting(environ: Mapping[str, str]) -> Tracing:
    try:
        from asyncjob_worker.tracing.export import exporting_provider
        from asyncjob_worker.tracing.spans import Spans
    except ImportError as error:
        raise ConfigError(f"spans are to be exported, but {error}: {_INSTALL}") from error
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    close: Callable[[], None] = exporting_provider("" if named else SERVICE)
    return Spans(close)
