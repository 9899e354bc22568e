"""What the owner of a Machine can change: units, caps, buyers, and nodes that are not in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from dovetail.core.explanation import Reason
from dovetail.machines.documents import Buyers, Caps, MachineSpec, MachineType
from dovetail.machines.explaining.cases import GuestCase, ready_node
from dovetail.machines.explaining.judging import Judgement
from dovetail.machines.explaining.remedies.remedy import Remedy, Supposition
from dovetail.machines.names import MAINTENANCE, NOT_READY, READY
from dovetail.machines.pods import type_of
from dovetail.machines.shapes import line_of
from dovetail.machines.validation.shapes import dependence_faults


def machine_remedies(case: GuestCase, found: Judgement) -> Iterator[list[Remedy]]:
    kind = next((one for one in case.spec.machine_types if one.name == type_of(case.pod)), None)
    reasons = found.reasons
    if kind is None:
        return
    if reasons & {Reason.STOCK, Reason.WINDOW, Reason.UNIT_GROUP}:
        counts = sorted({1, len(found.ahead) + 1, len(case.members())})
        yield [each for count in counts for each in more_units(case, kind, count)]
    if Reason.CAP in reasons:
        yield list(higher_caps(case, kind))
    if Reason.BUYER in reasons:
        yield list(more_buyers(case, kind))
    if Reason.POOL_NODE in reasons:
        yield list(nodes_come_back(case, found))


def path_of(spec: MachineSpec, kind: MachineType) -> str:
    position = [each.name for each in spec.machine_types].index(kind.name)
    return f"spec.machineTypes[{position}]"


def more_units(case: GuestCase, kind: MachineType, count: int) -> Iterator[Remedy]:
    """So many more of the type, of what it depends on, or of both."""
    line = line_of(case.spec, kind.name)
    for kinds in [[kind], line] if len(line) > 1 else [[kind]]:
        raised = [replace(each, available=each.available + count) for each in kinds]
        names = [each.name for each in kinds]
        spec = types_changed(case.spec, names, _with_more_units(count))
        if next(dependence_faults(replace(case.snapshot.machine, spec=spec)), None) is not None:
            continue
        now = " and ".join(f"{each.available} units of {each.name}" for each in raised)
        yield Remedy(
            reason=Reason.STOCK,
            old=" ".join(f"{each.name}:{each.available}" for each in kinds),
            new=" ".join(f"{each.name}:{each.available}" for each in raised),
            words=f"there are {now}",
            query=" ".join(
                f"{path_of(case.spec, each)}.available={each.available}" for each in raised
            ),
            suppose=_with_types_changed(names, _with_more_units(count)),
        )


def types_changed(
    spec: MachineSpec, names: Sequence[str], change: Callable[[MachineType], MachineType]
) -> MachineSpec:
    types = tuple(change(each) if each.name in names else each for each in spec.machine_types)
    return replace(spec, machine_types=types)


def _with_types_changed(
    names: Sequence[str], change: Callable[[MachineType], MachineType]
) -> Supposition:
    return lambda case: case.with_spec(types_changed(case.spec, names, change))


def _with_more_units(count: int) -> Callable[[MachineType], MachineType]:
    return lambda one: replace(one, available=one.available + count)


def _with_caps(caps: Caps) -> Callable[[MachineType], MachineType]:
    return lambda one: replace(one, caps=caps)


def higher_caps(case: GuestCase, kind: MachineType) -> Iterator[Remedy]:
    """One unit more for the namespace, for the user, or for both."""
    caps, path = kind.caps, path_of(case.spec, kind)
    namespace = caps.per_namespace
    user = caps.per_user
    raised = []
    if namespace is not None:
        raised.append(replace(caps, per_namespace=namespace + 1))
    if user is not None:
        raised.append(replace(caps, per_user=user + 1))
    if namespace is not None and user is not None:
        raised.append(replace(caps, per_namespace=namespace + 1, per_user=user + 1))
    for each in raised:
        changes = [
            (name, old, new)
            for name, old, new in (
                ("perNamespace", caps.per_namespace, each.per_namespace),
                ("perUser", caps.per_user, each.per_user),
            )
            if old != new
        ]
        yield Remedy(
            reason=Reason.CAP,
            old=" ".join(f"{name}:{old}" for name, old, _ in changes),
            new=" ".join(f"{name}:{new}" for name, _, new in changes),
            words=" and ".join(f"the cap {name} is {new}" for name, _, new in changes),
            query=" ".join(f"{path}.caps.{name}={new}" for name, _, new in changes),
            suppose=_with_types_changed([kind.name], _with_caps(each)),
        )


def more_buyers(case: GuestCase, kind: MachineType) -> Iterator[Remedy]:
    """Its namespace among the buyers of the type, of the Machine, or of both."""
    namespace = case.pod.metadata.namespace
    of_type = f"{path_of(case.spec, kind)}.buyers.namespaces"
    of_machine = "spec.buyers.namespaces"
    limits = [(of_type, kind.buyers), (of_machine, case.spec.buyers)]
    paths = [path for path, buyers in limits if buyers is not None]
    for chosen in [*([path] for path in paths), *([paths] if len(paths) > 1 else [])]:
        query = " ".join(f"{path}={namespace}" for path in chosen)
        yield Remedy(
            reason=Reason.BUYER,
            old=f"namespace={namespace}",
            new=query,
            words=f"namespace {namespace!r} is among the buyers",
            query=query,
            suppose=_with_buyer(
                namespace,
                kind.name if of_type in chosen else None,
                of_machine=of_machine in chosen,
            ),
        )


def _with_buyer(namespace: str, of_type: str | None, *, of_machine: bool) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        spec = types_changed(
            case.spec,
            [of_type] if of_type is not None else [],
            lambda one: replace(one, buyers=_with_namespace(one.buyers, namespace)),
        )
        if of_machine:
            spec = replace(spec, buyers=_with_namespace(spec.buyers, namespace))
        return case.with_spec(spec)

    return suppose


def _with_namespace(buyers: Buyers | None, namespace: str) -> Buyers | None:
    if buyers is None:
        return None
    return replace(buyers, namespaces=(*buyers.namespaces, namespace))


def nodes_come_back(case: GuestCase, found: Judgement) -> Iterator[Remedy]:
    """One of those that serve the type when they are ready."""
    modes = {each.name: each.mode for each in case.spec.node_pool}
    away = [
        place.name
        for place in found.nearest
        if place.name and any(one.reason is Reason.POOL_NODE for one in place.findings)
    ]
    for name in away:
        if name not in case.snapshot.nodes:
            continue
        is_closed = modes[name] == MAINTENANCE
        words = "leaves maintenance" if is_closed else "is ready again"
        position = list(modes).index(name)
        yield Remedy(
            reason=Reason.POOL_NODE,
            old=f"{name}:{MAINTENANCE if is_closed else NOT_READY}",
            new=f"{name}:{READY}",
            words=f"node {name} {words}",
            query=f"spec.nodePool[{position}].mode={READY}" if is_closed else "",
            suppose=_node_ready(name),
        )


def _node_ready(name: str) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        pool = tuple(
            replace(each, mode=READY) if each.name == name else each for each in case.spec.node_pool
        )
        spec = replace(case.spec, node_pool=pool)
        node = ready_node(spec, case.snapshot.machine.group, case.snapshot.nodes[name])
        return replace(case.with_spec(spec), nodes={**case.nodes, name: node})

    return suppose
