"""`python -m tests.node.registry.foreign_plugin SOCKET`: see test_foreign_plugin.py.

Nothing of dovetail is imported here.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from tests.node.wire import tables

REGISTRATION = tables.classes(tables.REGISTRATION)
API = tables.classes(tables.RESOURCE_PLUGIN)
NAME = "foreign.example/card"

HELD = API["GetResourcesAllocationResponse"]()


def get_info(_: Any) -> Any:
    return REGISTRATION["PluginInfo"](
        type="ResourcePlugin", name=NAME, supported_versions=["v1alpha1", "v1beta1"]
    )


def notify(status: Any) -> Any:
    assert status.plugin_registered, status.error
    return REGISTRATION["RegistrationStatusResponse"]()


def options(_: Any) -> Any:
    return API["ResourcePluginOptions"](
        with_topology_alignment=True, need_reconcile=True, extra_resources=["slot"]
    )


def hints(request: Any) -> Any:
    key = b"\x0a" + bytes([len(NAME)]) + NAME.encode()
    by_hand = {"anywhere": key, "nowhere": key + b"\x12\x00", "garbage": b"\xff\xff"}
    if request.pod_uid in by_hand:
        entry = by_hand[request.pod_uid]
        return b"\x52" + bytes([len(entry)]) + entry
    answer = API["ResourceHintsResponse"](pod_uid=request.pod_uid)
    found = answer.resource_hints[NAME].hints
    found.add(nodes=[0], preferred=True)
    found.add(nodes=[0, 1])
    return answer


def allocate(request: Any) -> Any:
    answer = API["ResourceAllocationResponse"](
        pod_uid=request.pod_uid, container_name=request.container_name
    )
    given = answer.allocation_result.resource_allocation[NAME]
    given.oci_property_name = "CpusetMems"
    given.allocation_result = ",".join(map(str, request.hint.nodes))
    given.allocated_quantity = request.resource_requests[NAME]
    given.envs["CARD_NODE"] = given.allocation_result
    given.envs["CARD_ROLE"] = request.annotations["kubernetes.io/pod-role"]
    given.envs["CARD_APP"] = request.labels["app"]
    given.topology_assignments[1] = 2
    HELD.pod_resources[request.pod_uid].container_resources[
        request.container_name
    ].resource_allocation[NAME].CopyFrom(given)
    return answer


def allocation(_: Any) -> Any:
    return HELD


def remove(request: Any) -> Any:
    HELD.pod_resources.pop(request.pod_uid, None)
    return API["RemovePodResponse"]()


def allocatable(_: Any) -> Any:
    answer = API["GetTopologyAwareAllocatableResourcesResponse"]()
    card = answer.allocatable_resources[NAME]
    card.is_node_resource = card.is_scalar_resource = True
    card.aggregated_allocatable_quantity = card.aggregated_capacity_quantity = 8
    for node in (0, 1):
        card.topology_aware_capacity_quantity_list.add(resource_value=4, node=node)
    return answer


METHODS = {
    "pluginregistration.Registration": {
        "GetInfo": (get_info, REGISTRATION["InfoRequest"]),
        "NotifyRegistrationStatus": (notify, REGISTRATION["RegistrationStatus"]),
    },
    "resourceplugin.v1alpha1.ResourcePlugin": {
        "GetResourcePluginOptions": (options, API["Empty"]),
        "GetTopologyHints": (hints, API["ResourceRequest"]),
        "Allocate": (allocate, API["ResourceRequest"]),
        "GetResourcesAllocation": (allocation, API["GetResourcesAllocationRequest"]),
        "RemovePod": (remove, API["RemovePodRequest"]),
        "GetTopologyAwareAllocatableResources": (
            allocatable,
            API["GetTopologyAwareAllocatableResourcesRequest"],
        ),
    },
}


def handler(answer: Any, question: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        lambda data, _: answer(data),
        request_deserializer=question.FromString,
        response_serializer=lambda made: (
            made if isinstance(made, bytes) else made.SerializeToString()
        ),
    )


def main(socket: str) -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    for service, methods in METHODS.items():
        handlers = {name: handler(*each) for name, each in methods.items()}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
