"""Why a pod may not start: stable tokens, for metrics and for those who match on them."""

from __future__ import annotations

from dovetail.node.common.ports import AdmissionRejected, PluginError, PluginFailure

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
    PluginFailure.DOWN: PLUGIN_DOWN,
    PluginFailure.TIMEOUT: PLUGIN_TIMEOUT,
    PluginFailure.REFUSED: PLUGIN_REFUSED,
    PluginFailure.UNIMPLEMENTED: PLUGIN_REFUSED,
    PluginFailure.GARBAGE: PLUGIN_GARBAGE,
}


def rejection(error: PluginError, *, later: bool = False) -> AdmissionRejected:
    return AdmissionRejected(OF_FAILURES[error.failure], str(error), later=later)
