"""Chooses what exports spans.

The provider that the program has set up, else one as the environment's standard variables ask.

Variables that are not read here, such as `OTEL_TRACES_SAMPLER`, are read by OpenTelemetry itself.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from asyncjob.errors import ConfigError
from asyncjob.extras import install_command

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"


def set_up_tracing(
    environ: Mapping[str, str], service: str, distribution: str
) -> Callable[[], None] | None:
    """Return what ends the export of this process's spans, None if nobody wants any.

    Spans are those of `service`, unless the environment names another; `distribution` has the
    extra that is needed. Raises ConfigError for what cannot be done.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if has_provider():
        return lambda: None
    return _start_exporter(environ, service, distribution) if wants_export(environ) else None


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


def has_provider() -> bool:
    """Return whether the program has set up a provider; loads nothing."""
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider
    )


def _start_exporter(
    environ: Mapping[str, str], service: str, distribution: str
) -> Callable[[], None]:
    try:
        from asyncjob.tracing.export import start_exporter
    except ImportError as error:
        raise ConfigError(
            f"spans are to be exported, but {error}: "
            f"{install_command('tracing', distribution)}, or set OTEL_TRACES_EXPORTER=none"
        ) from error
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return start_exporter("" if named else service)
