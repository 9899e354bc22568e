"""EMCO's contracts with its controllers, which have no package: placement, action, cluster events.

The placement answer has no placement in it: a controller removes clusters from the AppContext that
it is given the id of. Failures come as a status of the answer, not of the call.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class ResourceRequest(Message):
    app_context: Annotated[str, 1] = ""


class ResourceResponse(Message):
    app_context: Annotated[str, 1] = ""
    status: Annotated[bool, 2] = False
    message: Annotated[str, 3] = ""


class ContextUpdateRequest(Message):
    app_context: Annotated[str, 1] = ""
    intent_name: Annotated[str, 2] = ""
    update_from_app_context: Annotated[str, 3] = ""
    """Only for updates: the AppContext of what runs."""


class ContextUpdateResponse(Message):
    app_context_updated: Annotated[bool, 1] = False
    app_context_update_message: Annotated[str, 2] = ""


class TerminateRequest(Message):
    app_context: Annotated[str, 1] = ""


class TerminateResponse(Message):
    app_context_terminated: Annotated[bool, 1] = False
    app_context_terminated_message: Annotated[str, 2] = ""


class EventType(IntEnum):
    INSTANTIATE = 0
    TERMINATE = 1
    UPDATE = 2


class PostEventRequest(Message):
    app_context: Annotated[str, 1] = ""
    event_type: Annotated[EventType, 2] = EventType.INSTANTIATE


class PostEventResponse(Message):
    success: Annotated[bool, 1] = False
    post_event_message: Annotated[str, 2] = ""


class ClusterEventType(IntEnum):
    CREATED = 0
    UPDATED = 1
    DELETED = 2


class ClusterEventRequest(Message):
    provider_name: Annotated[str, 1] = ""
    cluster_name: Annotated[str, 2] = ""
    event: Annotated[ClusterEventType, 3] = ClusterEventType.CREATED


class ClusterEventResponse(Message):
    provider_name: Annotated[str, 1] = ""
    cluster_name: Annotated[str, 2] = ""
    status: Annotated[bool, 3] = False
    message: Annotated[str, 4] = ""


ACTION = "contextupdate"
FILTER_CLUSTERS = Method("PlacementController", "FilterClusters", ResourceRequest, ResourceResponse)
UPDATE = Method(ACTION, "UpdateAppContext", ContextUpdateRequest, ContextUpdateResponse)
TERMINATE = Method(ACTION, "TerminateAppContext", TerminateRequest, TerminateResponse)
POST_EVENT = Method(ACTION, "PostEvent", PostEventRequest, PostEventResponse)
PUBLISH = Method("ClmControllerEventChannel", "Publish", ClusterEventRequest, ClusterEventResponse)
