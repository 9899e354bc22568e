"""Stories of Machines: whatever happens, and wherever the operator dies, what it promises holds."""

from __future__ import annotations

import pytest

from tests.machines.simulation.stories import LAYOUTS, Story


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", LAYOUTS)
def test_whatever_happens_what_was_promised_holds(name: str, seed: int) -> None:
    Story(name, seed).tell(60)
