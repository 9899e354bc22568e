"""Why a pod may not start: stable tokens, for metrics and for those who match on them."""

from __future__ import annotations

from dovetail.core.explanation import Reason
from dovetail.node.common.ports import AdmissionRejected, PluginError, PluginFailure

TOPOLOGY_AFFINITY = Reason.TOPOLOGY_AFFINITY.value
PLUGIN_DOWN = Reason.PLUGIN_DOWN.value
PLUGIN_REFUSED = Reason.PLUGIN_REFUSED.value
PLUGIN_TIMEOUT = Reason.PLUGIN_TIMEOUT.value
PLUGIN_GARBAGE = Reason.PLUGIN_GARBAGE.value
CONFLICTING_SETTINGS = Reason.CONFLICTING_SETTINGS.value
UNKNOWN_PROPERTY = Reason.UNKNOWN_PROPERTY.value
BAD_REQUEST = Reason.BAD_REQUEST.value
POD_UNKNOWN = Reason.POD_UNKNOWN.value
CHECKPOINT_FAILED = Reason.CHECKPOINT_FAILED.value
RESIZE_UNDER_WAY = Reason.RESIZE_UNDER_WAY.value
RESIZE_OF_POD = Reason.RESIZE_OF_POD.value
DEVICE_UNKNOWN = Reason.DEVICE_UNKNOWN.value
DEVICE_UNHEALTHY = Reason.DEVICE_UNHEALTHY.value
DEVICE_TAKEN = Reason.DEVICE_TAKEN.value
CANNOT_INJECT = Reason.CANNOT_INJECT.value
ANNOTATION_NOT_TRUSTED = Reason.ANNOTATION_NOT_TRUSTED.value

OF_FAILURES = {
    PluginFailure.DOWN: PLUGIN_DOWN,
    PluginFailure.TIMEOUT: PLUGIN_TIMEOUT,
    PluginFailure.REFUSED: PLUGIN_REFUSED,
    PluginFailure.UNIMPLEMENTED: PLUGIN_REFUSED,
    PluginFailure.GARBAGE: PLUGIN_GARBAGE,
}


def rejection(error: PluginError, *, later: bool = False) -> AdmissionRejected:
    reason = error.reason or OF_FAILURES[error.failure]
    return AdmissionRejected(reason, str(error), later=later)
