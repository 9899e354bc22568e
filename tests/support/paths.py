"""Where the project's own files are, so that no test counts folders upwards by itself."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout: README.md, docs/, packaging/."""

SHARED = ROOT.parent / "shared"
"""Specifications and data beside the checkout, where they are."""
