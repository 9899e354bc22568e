"""Why a pod may not start: stable tokens, for metrics and for those who match on them."""

from __future__ import annotations

from dovetail.node.common.ports import Failure, PluginError, Rejected

TOPOLOGY_AFFINITY = "topology_affinity"
PLUGIN_DOWN = "plugin_down"
PLUGIN_REFUSED = "plugin_refused"
PLUGIN_TIMEOUT = "plugin_timeout"
PLUGIN_GARBAGE = "plugin_garbage"
CONFLICTING_SETTINGS = "conflicting_settings"
UNKNOWN_PROPERTY = "unknown_property"
BAD_REQUEST = "bad_request"
POD_UNKNOWN = "pod_unknown"
CHECKPOINT_FAILED = "checkpoint_failed"

OF_FAILURES = {
    Failure.DOWN: PLUGIN_DOWN,
    Failure.TIMEOUT: PLUGIN_TIMEOUT,
    Failure.REFUSED: PLUGIN_REFUSED,
    Failure.UNIMPLEMENTED: PLUGIN_REFUSED,
    Failure.GARBAGE: PLUGIN_GARBAGE,
}


def rejection(error: PluginError, *, later: bool = False) -> Rejected:
    return Rejected(OF_FAILURES[error.failure], str(error), later=later)
