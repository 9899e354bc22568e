"""Documents of YAML and JSON files, as commands are given them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dovetail.cli.support.exits import LocalFailure

STANDARD_INPUT = Path("-")


def documents(file: Path) -> Iterable[Any]:
    """All of a file, or of standard input."""
    return documents_of(text_of(file), file)


def text_of(file: Path) -> str:
    """Of a file, or of standard input."""
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
        return content.decode()
    except OSError as error:
        raise LocalFailure(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LocalFailure(f"{file}: neither YAML nor JSON: {error}") from error


def documents_of(text: str, file: Path) -> Iterable[Any]:
    """Of a text that stood in the file; JSON is YAML, so one reader does for both."""
    import yaml

    try:
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        words = " ".join(str(error).split())
        raise LocalFailure(f"{file}: neither YAML nor JSON: {words}") from error
