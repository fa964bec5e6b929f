"""Logs: constant messages with key-value fields, as text for people or JSON for machines."""

import logging
import sys
from collections.abc import Mapping
from typing import Final, Literal

from asyncjob.extras import needs

with needs("kubernetes"):
    import structlog

LogFormat = Literal["text", "json"]
NO_LEVELS: Final[Mapping[str, int]] = {}


def configure_logging(
    style: LogFormat = "text",
    level: int = logging.INFO,
    *,
    library_levels: Mapping[str, int] = NO_LEVELS,
) -> None:
    """Send the logs of this process to stderr, those of its libraries included.

    `library_levels` are the lowest levels of loggers that would log too much, or what they carry;
    they hold whatever `level` is.
    """
    chain: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*chain, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=chain, processors=_renderers(style))
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, lowest in library_levels.items():
        logging.getLogger(name).setLevel(max(level, lowest))


def _renderers(style: LogFormat) -> list[structlog.typing.Processor]:
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    # Never the values of variables, which both show by default: a payload may be a secret.
    if style == "json":
        described = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        format_errors = structlog.processors.ExceptionRenderer(described)
        return [strip, format_errors, structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [
        strip,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),
    ]
