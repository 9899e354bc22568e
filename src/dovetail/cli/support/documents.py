"""Documents of YAML and JSON files, as commands are given them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dovetail.cli.support.exits import LocalFailure

STANDARD_INPUT = Path("-")


def documents(file: Path) -> Iterable[Any]:
    """All of a file, or of standard input; JSON is YAML, so one reader does for both."""
    import yaml

    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
        return list(yaml.load_all(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except OSError as error:
        raise LocalFailure(f"{file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise LocalFailure(f"{file}: neither YAML nor JSON: {words}") from error
