"""Logs of the agent on standard error: a JSON object a line, or a line for people."""

from __future__ import annotations

import logging
import sys

import orjson
import structlog


def configure(level: str, form: str) -> None:
    number = logging.getLevelNamesMapping()[level.upper()]
    renderers: dict[str, structlog.typing.Processor] = {
        "json": structlog.processors.JSONRenderer(serializer=_to_text),
        "text": structlog.dev.ConsoleRenderer(colors=False),
    }
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderers[form],
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=number, stream=sys.stderr, force=True)


def _to_text(document: object, **_: object) -> str:
    return orjson.dumps(document, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
