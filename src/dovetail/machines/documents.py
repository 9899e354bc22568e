"""Machine and MachineNodePool as they are written, decoded from the API or from a file.

What the schema of the custom resource guarantees is not checked again here: see `validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dovetail.machines.names import MACHINE_GROUP, READY
from dovetail.podfit.objects import (
    ApiResource,
    ApiStruct,
    Condition,
    KubeObject,
    LabelSelector,
)

GROUP, VERSION = "imperator.tenzen-y.io", "v1alpha1"

V = TypeVar("V")

Number = int | float
Written = str | int | float
"""A quantity as it was written."""


class TypeReference(ApiStruct, frozen=True, kw_only=True):
    name: str


class PoolNode(ApiStruct, frozen=True, kw_only=True):
    name: str
    mode: str = READY
    taint: bool = False
    machine_type: tuple[TypeReference, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.machine_type)


class GpuShape(ApiStruct, frozen=True, kw_only=True):
    type: str = ""
    num: int | str = 0
    family: str = ""
    product: str = ""
    machine: str = ""

    @property
    def count(self) -> int:
        """How many; some write the number as text. Below nothing, if it is none."""
        text = str(self.num)
        return int(text) if text.isascii() and text.isdecimal() else -1

    @property
    def selectors(self) -> tuple[tuple[str, str], ...]:
        """What it says of family, product and machine: exactly one, in a valid shape."""
        given = (("family", self.family), ("product", self.product), ("machine", self.machine))
        return tuple((key, value) for key, value in given if value)


class Dependence(ApiStruct, frozen=True, kw_only=True):
    parent: str
    available_ratio: Number


class ShapeSpec(ApiStruct, frozen=True, kw_only=True):
    cpu: Written
    memory: Written
    gpu: GpuShape | None = None
    host_limit: Number | None = None
    dependence: Dependence | None = None


class Buyers(ApiStruct, frozen=True, kw_only=True):
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class Caps(ApiStruct, frozen=True, kw_only=True):
    per_namespace: int | None = None
    per_user: int | None = None


class Window(ApiStruct, frozen=True, kw_only=True):
    name: str
    start: str
    duration: str
    units: int
    rrule: str = ""
    time_zone: str = "UTC"
    hold_before: str | None = None
    buyers: Buyers | None = None


class MachineType(ApiStruct, frozen=True, kw_only=True):
    name: str
    spec: ShapeSpec
    available: int
    when_sold_out: str = "wait"
    buyers: Buyers | None = None
    caps: Caps = Caps()
    max_duration: str | None = None
    when_expired: str = "announce"
    announce_before: str = "15m"
    windows: tuple[Window, ...] = ()


class MachineSpec(ApiStruct, frozen=True, kw_only=True, dict=True, gc=True):
    """What is `derived` of it is kept on it."""

    node_pool: tuple[PoolNode, ...] = ()
    machine_types: tuple[MachineType, ...] = ()
    several_types_per_node: bool = False
    counting: str = "bound"
    buyers: Buyers | None = None


def derived(work_out: Callable[[MachineSpec], V]) -> Callable[[MachineSpec], V]:
    """Worked out once for each specification, and kept on it: plans ask the same all the time.

    It cannot be stale, for a specification never changes. Whoever asks must not change it, either.
    """
    name = f"{work_out.__module__}.{work_out.__qualname__}"

    @wraps(work_out)
    def kept(spec: MachineSpec) -> V:
        there: dict[str, V] = spec.__dict__
        if name not in there:
            there[name] = work_out(spec)
        return there[name]

    return kept


class MachineStatus(ApiStruct, frozen=True, kw_only=True):
    observed_generation: int = 0
    accepted_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    available_machines: tuple[dict[str, Any], ...] = ()
    holders: tuple[dict[str, Any], ...] = ()
    waiting: tuple[dict[str, Any], ...] = ()
    windows: tuple[dict[str, Any], ...] = ()
    summary: dict[str, str] = {}


class Machine(KubeObject, frozen=True, kw_only=True):
    API = ApiResource(GROUP, VERSION, "machines", "Machine", namespaced=False)

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def group(self) -> str:
        return self.metadata.labels.get(MACHINE_GROUP, "")


class NodePoolSpec(ApiStruct, frozen=True, kw_only=True):
    machine_group: str = ""
    node_pool: tuple[PoolNode, ...] = ()
    machine_type_stock: tuple[TypeReference, ...] = ()


class NodeCondition(ApiStruct, frozen=True, kw_only=True):
    name: str
    condition: str


class NodePoolStatus(ApiStruct, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    node_pool: tuple[NodeCondition, ...] = ()


class MachineShape(KubeObject, frozen=True, kw_only=True):
    """A type as it is sold: what the admission policies give to guests. See `parameters`."""

    API = ApiResource("dovetail.dev", VERSION, "machineshapes", "MachineShape", namespaced=False)

    spec: dict[str, Any] = {}


class MachineNodePool(KubeObject, frozen=True, kw_only=True):
    API = ApiResource(GROUP, VERSION, "machinenodepools", "MachineNodePool", namespaced=False)

    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()
