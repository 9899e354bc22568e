"""Logs: one JSON object a line on standard output, ours and the web server's alike."""

from __future__ import annotations

import logging
import sys

import orjson
import structlog


def configure(level: str) -> None:
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # As text: a traceback with the values of variables could tell secrets.
        structlog.processors.format_exc_info,
    ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=orjson.dumps)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.BytesLoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *shared,
                structlog.processors.JSONRenderer(serializer=to_text),
            ]
        )
    )
    logging.basicConfig(handlers=[handler], level=number, force=True)


def to_text(document: object, **_: object) -> str:
    return orjson.dumps(document).decode()
