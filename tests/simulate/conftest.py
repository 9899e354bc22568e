"""Leaves out what needs data that are not here; the head of the report says so."""

from __future__ import annotations

from tests.support import openb_data

collect_ignore = [] if openb_data.THERE else ["test_quality.py"]
