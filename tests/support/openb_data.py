"""Where the openb traces are; what needs them is collected only if they are there, and says so."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.paths import SHARED

BESIDE = SHARED / "data/openb"
DATA = Path(os.environ.get("DOVETAIL_OPENB", BESIDE))
THERE = (DATA / "openb_node_list_gpu_node.csv").exists()
LEFT_OUT = f"tests/simulate/test_quality.py: no openb data in {DATA}, see DOVETAIL_OPENB"
