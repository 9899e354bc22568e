"""Where the project's own files are, so that no test counts folders upwards by itself."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout: README.md, docs/, packaging/."""

DOVETAIL = Path(sys.executable).with_name("dovetail")
"""The program of the environment this runs in."""

SHARED = ROOT.parent / "shared"
"""Specifications and data beside the checkout, where they are."""
