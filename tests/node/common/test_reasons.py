"""Why pods may not start."""

from __future__ import annotations

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.common.reasons import OF_FAILURES, rejection


def test_every_failure_has_a_reason() -> None:
    assert set(OF_FAILURES) == set(PluginFailure)
    error = rejection(PluginError("cpu", PluginFailure.DOWN, "words"), later=True)
    assert (error.reason, str(error), error.later) == ("plugin_down", "words", True)
