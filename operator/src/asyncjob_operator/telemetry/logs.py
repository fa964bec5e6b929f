"""Logs: structlog over the standard library, as text for people or JSON for machines."""

import logging
import sys
from enum import StrEnum

import structlog


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


_LIBRARY_LEVELS = {
    "kopf.objects": logging.WARNING,
    "kopf": logging.INFO,
    "aiohttp.access": logging.WARNING,
}
"""kopf logs a line per event; that is its own business."""


def configure_logs(log_format: LogFormat, level: str) -> None:
    """Set up logging of the whole process, foreign libraries included."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, floor in _LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(max(floor, root.level))


def _renderer(log_format: LogFormat) -> structlog.typing.Processor:
    if log_format is LogFormat.JSON:
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
