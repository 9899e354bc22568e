"""Log configuration of every daemon: one line for an event, of ours and of libraries alike.

`serve`, `scheduler` and plugins write JSON to standard output; the agent writes JSON or text for
people to standard error.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

import orjson
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

LogFormat = Literal["json", "text"]

EVENT: tuple[Processor, ...] = (
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    # As text: a traceback with the values of variables could tell secrets.
    structlog.processors.format_exc_info,
)


TALKATIVE = ("httpx2", "httpcore2")
"""Loggers of libraries that have a line for every request: the agent asks every few seconds."""


def configure(level: str, form: LogFormat = "json", *, to_stderr: bool = False) -> None:
    number = logging.getLevelNamesMapping()[level.upper()]
    stream = sys.stderr if to_stderr else sys.stdout
    json = form == "json"
    structlog.configure(
        processors=[
            *EVENT,
            structlog.processors.JSONRenderer(serializer=_encoded)
            if json
            else structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # Bytes as they are: every request has its line.
        logger_factory=structlog.BytesLoggerFactory(stream.buffer)
        if json
        else structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_library_formatter() if json else logging.Formatter(logging.BASIC_FORMAT))
    logging.basicConfig(handlers=[handler], level=number, force=True)
    for name in TALKATIVE:
        # Whoever wants to see everything does.
        own = number if number <= logging.DEBUG else max(number, logging.WARNING)
        logging.getLogger(name).setLevel(own)


def _library_formatter() -> logging.Formatter:
    renderer = structlog.processors.JSONRenderer(serializer=_text)
    return ProcessorFormatter(
        processors=[ProcessorFormatter.remove_processors_meta, *EVENT, renderer]
    )


def _encoded(document: object, **_: object) -> bytes:
    return orjson.dumps(document, default=str, option=orjson.OPT_NON_STR_KEYS)


def _text(document: object, **_: object) -> str:
    return _encoded(document).decode()
