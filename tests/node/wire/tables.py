"""The messages of the plugin APIs, from the published field tables: not from our declarations.

What a test builds with these classes comes from protobuf itself, with maps that are real maps.
A line is `name=number:type`; `[type]` is repeated, `<key,value>` a map.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
ENUMS = {
    "ContainerType": ("INIT", "MAIN", "SIDECAR", "EPHEMERAL"),
    "TopologyLevel": ("NUMA", "SOCKET"),
}
SCALARS = {
    "string": Field.TYPE_STRING,
    "bool": Field.TYPE_BOOL,
    "double": Field.TYPE_DOUBLE,
    "uint64": Field.TYPE_UINT64,
    "int64": Field.TYPE_INT64,
}

REGISTRATION = """
InfoRequest:
PluginInfo: type=1:string name=2:string endpoint=3:string supported_versions=4:[string]
RegistrationStatus: plugin_registered=1:bool error=2:string
RegistrationStatusResponse:
"""

POD = "pod_uid=1:string pod_namespace=2:string pod_name=3:string"
CONTAINER = f"""{POD} container_name=4:string container_type=5:ContainerType
 container_index=6:uint64 pod_role=7:string pod_type=8:string"""
WHOLE_POD = f"{POD} pod_role=4:string pod_type=5:string resource_name=6:string"

RESOURCE_PLUGIN = f"""
Empty:
ResourcePluginOptions: pre_start_required=1:bool with_topology_alignment=2:bool
 need_reconcile=3:bool associated_devices=4:[string] extra_resources=5:[string]
RegisterRequest: version=1:string endpoint=2:string resource_name=3:string
 options=4:ResourcePluginOptions
ResourceRequest: {CONTAINER} resource_name=9:string hint=10:TopologyHint
 resource_requests=11:<string,double> labels=12:<string,string> annotations=13:<string,string>
 native_qos_class=14:string runtime_class=15:string limits=100:<string,double>
 resource_names=101:<string,string> chosen_devices=110:[ChosenDevice]
ChosenDevice: resource=1:string id=2:string units=3:int64
ResourceHintsResponse: {CONTAINER} resource_name=9:string
 resource_hints=10:<string,ListOfTopologyHints> labels=11:<string,string>
 annotations=12:<string,string> native_qos_class=13:string
ResourceAllocationResponse: {CONTAINER} resource_name=9:string
 allocation_result=10:ResourceAllocation labels=11:<string,string>
 annotations=12:<string,string> native_qos_class=13:string
PodResourceRequest: {WHOLE_POD} hint=7:TopologyHint resource_requests=8:<string,double>
 labels=9:<string,string> annotations=10:<string,string> native_qos_class=14:string
 limits=100:<string,double> resource_names=101:<string,string> pod_level=102:bool
 chosen_devices=110:[ChosenDevice]
PodResourceHintsResponse: {WHOLE_POD} resource_hints=7:<string,ListOfTopologyHints>
 labels=8:<string,string> annotations=9:<string,string>
PodResourceAllocationResponse: {WHOLE_POD} allocation_result=7:ResourceAllocation
 labels=8:<string,string> annotations=9:<string,string>
ListOfTopologyHints: hints=1:[TopologyHint]
TopologyHint: nodes=1:[uint64] preferred=2:bool
GetResourcesAllocationRequest:
GetResourcesAllocationResponse: pod_resources=1:<string,ContainerResources>
ContainerResources: container_resources=1:<string,ResourceAllocation>
ResourceAllocation: resource_allocation=1:<string,ResourceAllocationInfo>
ResourceAllocationInfo: oci_property_name=1:string is_node_resource=2:bool
 is_scalar_resource=3:bool allocated_quantity=4:double allocation_result=5:string
 envs=6:<string,string> annotations=7:<string,string> resource_hints=8:ListOfTopologyHints
 topology_assignments=9:<uint64,uint64> mounts=10:[Mount] devices=11:[DeviceSpec]
 device_ids=100:[string] cdi_devices=101:[string]
Mount: container_path=1:string host_path=2:string read_only=3:bool
DeviceSpec: container_path=1:string host_path=2:string permissions=3:string
RemovePodRequest: pod_uid=1:string
RemovePodResponse:
GetTopologyAwareResourcesRequest: pod_uid=1:string container_name=2:string
GetTopologyAwareResourcesResponse: pod_uid=1:string pod_name=2:string pod_namespace=3:string
 container_topology_aware_resources=4:ContainerTopologyAwareResources
ContainerTopologyAwareResources: container_name=1:string
 allocated_resources=2:<string,TopologyAwareResource>
TopologyAwareResource: is_node_resource=1:bool is_scalar_resource=2:bool
 aggregated_quantity=3:double original_aggregated_quantity=4:double
 topology_aware_quantity_list=5:[TopologyAwareQuantity]
 original_topology_aware_quantity_list=6:[TopologyAwareQuantity]
TopologyAwareQuantity: resource_value=1:double node=2:uint64 name=3:string type=4:string
 topology_level=5:TopologyLevel annotations=6:<string,string>
GetTopologyAwareAllocatableResourcesRequest:
GetTopologyAwareAllocatableResourcesResponse:
 allocatable_resources=1:<string,AllocatableTopologyAwareResource>
AllocatableTopologyAwareResource: is_node_resource=1:bool is_scalar_resource=2:bool
 aggregated_allocatable_quantity=3:double
 topology_aware_allocatable_quantity_list=4:[TopologyAwareQuantity]
 aggregated_capacity_quantity=5:double
 topology_aware_capacity_quantity_list=6:[TopologyAwareQuantity]
PreStartContainerRequest: {POD} container_name=4:string
PreStartContainerResponse:
NUMANode: ID=1:int64
TopologyInfo: nodes=1:[NUMANode]
AssociatedDevice: ID=1:string health=2:string topology=3:TopologyInfo
UpdateAllocatableAssociatedDevicesRequest: device_name=1:string devices=2:[AssociatedDevice]
UpdateAllocatableAssociatedDevicesResponse:
DeviceRequest: device_name=1:string hint=2:TopologyHint available_devices=3:[string]
 reusable_devices=4:[string] device_request=5:uint64
AssociatedDeviceRequest: resource_request=1:ResourceRequest device_request=2:[DeviceRequest]
 accompany_resource_name=3:string device_name=4:string
AssociatedDeviceHintsResponse: {CONTAINER} device_name=9:string
 device_hints=10:ListOfTopologyHints labels=11:<string,string> annotations=12:<string,string>
AssociatedDeviceAllocation: allocated_devices=1:[string]
AssociatedDeviceAllocationResponse: allocation_result=1:AssociatedDeviceAllocation
"""

POD_RESOURCES = """
NUMANode: ID=1:int64
TopologyInfo: nodes=1:[NUMANode]
ContainerDevices: resource_name=1:string device_ids=2:[string] topology=3:TopologyInfo
ContainerMemory: memory_type=1:string size=2:uint64 topology=3:TopologyInfo
TopologyAwareQuantity: resource_value=1:double node=2:uint64 name=3:string type=4:string
 topology_level=5:TopologyLevel annotations=6:<string,string>
TopologyAwareResource: resource_name=1:string is_node_resource=2:bool is_scalar_resource=3:bool
 aggregated_quantity=4:double original_aggregated_quantity=5:double
 topology_aware_quantity_list=6:[TopologyAwareQuantity]
 original_topology_aware_quantity_list=7:[TopologyAwareQuantity]
AllocatableTopologyAwareResource: resource_name=1:string is_node_resource=2:bool
 is_scalar_resource=3:bool aggregated_allocatable_quantity=4:double
 topology_aware_allocatable_quantity_list=5:[TopologyAwareQuantity]
 aggregated_capacity_quantity=6:double
 topology_aware_capacity_quantity_list=7:[TopologyAwareQuantity]
ContainerResources: name=1:string devices=2:[ContainerDevices] cpu_ids=3:[int64]
 memory=4:[ContainerMemory] resources=15:[TopologyAwareResource]
PodResources: name=1:string namespace=2:string containers=3:[ContainerResources]
 cpu_ids=4:[int64] memory=5:[ContainerMemory] pod_role=12:string pod_type=13:string
 labels=14:<string,string> annotations=15:<string,string>
ListPodResourcesRequest:
ListPodResourcesResponse: pod_resources=1:[PodResources]
GetPodResourcesRequest: pod_name=1:string pod_namespace=2:string
GetPodResourcesResponse: pod_resources=1:PodResources
AllocatableResourcesRequest:
AllocatableResourcesResponse: devices=1:[ContainerDevices] cpu_ids=2:[int64]
 memory=3:[ContainerMemory] resources=15:[AllocatableTopologyAwareResource]
"""


@cache
def classes(table: str) -> dict[str, Any]:
    """Protobuf's class of each message."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, each in enumerate(values):
            enum.value.add(name=each, number=number)
    for line in re.sub(r"\n ", " ", table).strip().splitlines():
        name, _, fields = line.partition(":")
        declared = file.message_type.add(name=name)
        for field in fields.split():
            found = re.fullmatch(r"(\w+)=(\d+):(.+)", field)
            assert found, field
            _add(declared, found[1], int(found[2]), found[3])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        each.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{each.name}"))
        for each in file.message_type
    }


def _add(into: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    field = into.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
    if kind.startswith("<"):
        key, value = kind[1:-1].split(",")
        entry = into.nested_type.add(name="".join(map(str.title, name.split("_"))) + "Entry")
        entry.options.map_entry = True
        _add(entry, "key", 1, key)
        _add(entry, "value", 2, value)
        kind = f"[{into.name}.{entry.name}]"
    if kind.startswith("["):
        field.label, kind = Field.LABEL_REPEATED, kind[1:-1]
    if kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type = Field.TYPE_ENUM if kind in ENUMS else Field.TYPE_MESSAGE
        field.type_name = f".t.{kind}"
