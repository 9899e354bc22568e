"""Where the specification of resource classes is, whose examples are tested as it has them.

What needs it is left out where it is not there, and that is said.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import SHARED

BESIDE = SHARED / "specs/2-resource-classes.md"
SPECIFICATION = Path(os.environ.get("DOVETAIL_CLASSES_SPEC", BESIDE))
THERE = SPECIFICATION.exists()
LEFT_OUT = f"tests/classes/test_examples.py: no {SPECIFICATION}, see DOVETAIL_CLASSES_SPEC"


def resource_classes() -> dict[str, dict[str, Any]]:
    """The documents of kind ResourceClass that the text shows, by name."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    shown = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    documents = [yaml.safe_load(each) for each in shown]
    return {
        each["metadata"]["name"]: each for each in documents if each.get("kind") == "ResourceClass"
    }
