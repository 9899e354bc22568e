"""Where the real Placement is installed, with what its own tests need."""

from __future__ import annotations

from tests.support.paths import ROOT

PYTHON = ROOT / ".venv-reference" / "bin" / "python"


def python() -> str:
    """The interpreter of that environment."""
    if not PYTHON.exists():
        raise FileNotFoundError("the real Placement is not installed: run `make reference`")
    return str(PYTHON)
