"""`python -m tests.node.admission.katalyst_plugin SOCKET RESOURCE`: see test_katalyst_plugin.py.

It has the checks of Katalyst's CPU and memory plugins on what is asked, to the word, and is made of
protobuf's own classes from the published tables. Nothing of dovetail is imported here.
"""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from tests.node.wire import tables

REGISTRATION = tables.classes(tables.REGISTRATION)
API = tables.classes(tables.RESOURCE_PLUGIN)

CPU, MEMORY = "cpu", "memory"
MILLI = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
RECLAIMED_MEMORY = "resource.katalyst.kubewharf.io/reclaimed_memory"
PROPERTIES = {CPU: "CpusetCpus", MEMORY: "CpusetMems"}


class Invalid(Exception):
    """What a Go plugin answers with an error."""


def quantity(request: Any) -> int:
    """Of the one resource that may be asked for."""
    if len(request.resource_requests) != 1:
        raise Invalid(f"invalid req.ResourceRequests length: {len(request.resource_requests)}")
    name, amount = next(
        (str(name), float(each)) for name, each in request.resource_requests.items()
    )
    if name == MILLI:
        return max(math.ceil(amount / 1000.0), 0)
    if name in (CPU, MEMORY, RECLAIMED_MEMORY):
        return max(math.ceil(amount), 0)
    raise Invalid(f"invalid request resource name: {name}")


class Plugin:
    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.held = API["GetResourcesAllocationResponse"]()

    def info(self, _: Any) -> Any:
        return REGISTRATION["PluginInfo"](
            type="ResourcePlugin", name=self.resource, supported_versions=["v1alpha1"]
        )

    def notify(self, _: Any) -> Any:
        return REGISTRATION["RegistrationStatusResponse"]()

    def options(self, _: Any) -> Any:
        return API["ResourcePluginOptions"](with_topology_alignment=True, need_reconcile=True)

    def hints(self, request: Any) -> Any:
        quantity(request)
        answer = API["ResourceHintsResponse"](pod_uid=request.pod_uid)
        answer.resource_hints[self.resource].hints.add(nodes=[0], preferred=True)
        return answer

    def allocate(self, request: Any) -> Any:
        amount = quantity(request)
        answer = API["ResourceAllocationResponse"](
            pod_uid=request.pod_uid, container_name=request.container_name
        )
        given = answer.allocation_result.resource_allocation[self.resource]
        given.oci_property_name = PROPERTIES[self.resource]
        given.allocation_result = "0" if self.resource == MEMORY else f"0-{amount - 1}"
        given.is_scalar_resource = True
        given.allocated_quantity = amount
        pod = self.held.pod_resources[request.pod_uid].container_resources
        pod[request.container_name].resource_allocation[self.resource].CopyFrom(given)
        return answer

    def for_pod(self, _: Any) -> Any:
        raise Invalid("not implemented")

    def allocation(self, _: Any) -> Any:
        return self.held

    def remove(self, request: Any) -> Any:
        self.held.pod_resources.pop(request.pod_uid, None)
        return API["RemovePodResponse"]()

    def methods(self) -> dict[str, dict[str, tuple[Any, Any]]]:
        return {
            "pluginregistration.Registration": {
                "GetInfo": (self.info, REGISTRATION["InfoRequest"]),
                "NotifyRegistrationStatus": (self.notify, REGISTRATION["RegistrationStatus"]),
            },
            "resourceplugin.v1alpha1.ResourcePlugin": {
                "GetResourcePluginOptions": (self.options, API["Empty"]),
                "GetTopologyHints": (self.hints, API["ResourceRequest"]),
                "Allocate": (self.allocate, API["ResourceRequest"]),
                "GetPodTopologyHints": (self.for_pod, API["PodResourceRequest"]),
                "AllocateForPod": (self.for_pod, API["PodResourceRequest"]),
                "GetResourcesAllocation": (self.allocation, API["GetResourcesAllocationRequest"]),
                "RemovePod": (self.remove, API["RemovePodRequest"]),
            },
        }


def handler(answer: Any, question: Any) -> Any:
    def answered(data: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answer(data)
        except Invalid as error:
            # As Go's gRPC does with an error that has no code.
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return grpc.unary_unary_rpc_method_handler(
        answered,
        request_deserializer=question.FromString,
        response_serializer=lambda made: made.SerializeToString(),
    )


def main(socket: str, resource: str) -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    for service, methods in Plugin(resource).methods().items():
        handlers = {name: handler(*each) for name, each in methods.items()}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
