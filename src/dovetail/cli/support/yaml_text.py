"""YAML writer of `-o yaml`: block style, strings quoted where they could be misread.

Importing PyYAML takes longer than most commands do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"}
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML does not allow, or takes for a line break."""


def dumps(document: Any) -> str:
    return "\n".join(lines(document))


def lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from entry(f"{scalar(str(key))}:", item)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from listed(item)
    else:
        yield scalar(value)


def entry(key: str, item: Any) -> Iterator[str]:
    if isinstance(item, dict | list | tuple) and item:
        yield key
        yield from (f"  {line}" for line in lines(item))
    else:
        yield f"{key} {scalar(item)}"


def listed(item: Any) -> Iterator[str]:
    for at, line in enumerate(lines(item)):
        yield f"- {line}" if at == 0 else f"  {line}"


def scalar(value: Any) -> str:
    """JSON is YAML, but for a few characters."""
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    text = orjson.dumps(value).decode()
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
