"""The contract of placement controllers as the page prints it."""

from __future__ import annotations

from tests.service.intents.controllers.protos import messages
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/writing-a-controller.md").read_text(encoding="utf-8")
PLACEMENT = PAGE.split("```proto\n")[1].split("```")[0]
THEIRS = messages(PLACEMENT)
