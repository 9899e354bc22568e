"""An unmodified kubelet that pins containers itself: the agent does not start beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.node.kubelet.bed import NodeBed
from tests.support.processes import ProcessError


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    """On containerd, without the agent; one CPU is for whoever has none of his own."""
    static = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    return {"agent": False, "kubelet_settings": static}


def test_agent_does_not_start_beside_a_static_manager(bed: NodeBed) -> None:
    bed.run_pod("own", cpu="1")
    assert bed.pinned("own").cpus == "1"
    with pytest.raises(ProcessError, match="static"):
        bed.agent.start()
    assert bed.agent.wait() == 6
    bed.delete_pod("own")


def test_agent_starts_if_that_is_allowed(bed: NodeBed) -> None:
    bed.agent.settings["allow_static_managers"] = True
    bed.agent.start()
    bed.agent.stop()
