"""Why pods may not start."""

from __future__ import annotations

from dovetail.node.common.ports import Failure, PluginError
from dovetail.node.common.reasons import OF_FAILURES, rejection


def test_every_failure_has_a_reason() -> None:
    assert set(OF_FAILURES) == set(Failure)
    error = rejection(PluginError("cpu", Failure.DOWN, "words"), later=True)
    assert (error.reason, str(error), error.later) == ("plugin_down", "words", True)
