"""After any sequence of events, in whatever batches, the ledger is what a fresh list gives."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL
from dovetail.kube.classes.node_annotation import DEVICES, text_of
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.kube.mirror.observation import ClusterObservation
from dovetail.ledger import Ledger, Transaction, claims
from dovetail.ledger.bulk import audit
from dovetail.ledger.intents import node_rows, nodes
from dovetail.ledger.intents.node_names import consumer_uuid, root_uuid
from dovetail.podfit.objects import KubeObject, Node, Pod, ResourceSlice

NODES = ("n1", "n2", "n3")
PODS = ("a", "b", "c", "d")
NUMBERS = count()

Objects = dict[tuple[type[KubeObject], str], KubeObject]


def node(name: str, cpu: int, labels: int, gpus: int, annotated: int) -> Node:
    amounts = {"cpu": str(cpu), "pods": "10", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    devices = [Device(node=name, name=f"fpga-{n}", kind="fpga") for n in range(annotated)]
    notes = {DEVICES: text_of(devices)} if annotated else {}
    meta = {"name": name, "labels": {"zone": str(labels)}, "annotations": notes}
    return msgspec.convert(
        {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}, Node
    )


def pod(name: str, on: str, cpu: int, *, phase: str, deployment: str, device: int) -> Pod:
    labels = {DEPLOYMENT_LABEL: deployment, APP_LABEL: "app"} if deployment else {}
    requests = {"cpu": f"{cpu}00m", **({"nvidia.com/gpu": "1"} if cpu > 6 else {})}
    notes = annotations_of(on, [DeviceHolding(f"fpga-{device}", 1)]) if device < 2 else {}
    written = {
        "metadata": {
            "name": name,
            "namespace": "x",
            "uid": f"{name}-{cpu}",
            "labels": labels,
            "annotations": notes,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(written, Pod)


def slice_of(on: str, devices: int) -> ResourceSlice:
    written = {
        "metadata": {"name": f"slice-{on}"},
        "spec": {
            "driver": "d",
            "nodeName": on,
            "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"g{n}"} for n in range(devices)],
        },
    }
    return msgspec.convert(written, ResourceSlice)


def claim(name: str, on: str, device: int, uid: str) -> ResourceClaim:
    results = [{"driver": "d", "pool": on, "device": f"g{device}"}]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "uid": uid}],
    }
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "x"}, "status": status}, ResourceClaim
    )


small = st.integers(0, 3)
some_node = st.sampled_from(NODES)
new_objects = st.one_of(
    st.builds(node, some_node, st.integers(1, 4), small, small, small),
    st.builds(
        pod,
        st.sampled_from(PODS),
        st.sampled_from((*NODES, "")),
        st.integers(0, 9),
        phase=st.sampled_from(("Running", "Succeeded", "Pending")),
        deployment=st.sampled_from(("", "", "d1", "d2")),
        device=small,
    ),
    st.builds(slice_of, some_node, small),
    st.builds(claim, st.sampled_from("xy"), some_node, small, st.sampled_from(("a-1", "b-2"))),
)
removed = st.one_of(
    st.tuples(st.just(Node), some_node),
    st.tuples(st.just(Pod), st.sampled_from(PODS).map(lambda name: f"x/{name}")),
    st.tuples(st.just(ResourceSlice), some_node.map(lambda name: f"slice-{name}")),
    st.tuples(st.just(ResourceClaim), st.sampled_from(("x/x", "x/y"))),
)
written = st.just("write")
steps = st.lists(st.one_of(new_objects, new_objects, removed, written), max_size=40)


def tell(observation: ClusterObservation, old: Any, new: Any) -> None:
    handlers: dict[type[KubeObject], Any] = {
        Node: observation.on_node,
        Pod: observation.on_pod,
        ResourceSlice: observation.on_slice,
        ResourceClaim: observation.on_claim,
    }
    handlers[type(new or old)](old, new)


def write(ledger: Ledger, cluster: str, observation: ClusterObservation) -> None:
    changes = observation.taken(observation.changed_nodes())

    def enter(tx: Transaction) -> None:
        nodes.leave(tx, cluster, changes.gone)
        nodes.enter(tx, cluster, changes.nodes)

    ledger.write(enter).result()


def state(ledger: Ledger, cluster: str) -> dict[str, Any]:
    """All that the ledger has of a cluster, as it would be of any other of the same nodes."""

    def read(tx: Transaction) -> dict[str, Any]:
        rows = [row for row in node_rows.of_cluster(tx, cluster) if not row.is_gone]
        used = node_rows.usage(tx, [row.root_id for row in rows])
        stock = {
            row.name: tx.rows(
                """SELECT p.name, k.name, i.total, i.reserved FROM providers p
                   JOIN inventories i ON i.provider_id = p.id
                   JOIN resource_classes k ON k.id = i.class_id WHERE p.root_id = ?""",
                (row.root_id,),
            )
            for row in rows
        }
        return {
            row.name: (
                row.document,
                row.pods,
                sorted(
                    (at.removeprefix(cluster), *each) for at, *each in used.get(row.root_id, ())
                ),
                sorted((at.removeprefix(cluster), *each) for at, *each in stock[row.name]),
            )
            for row in rows
        }

    return ledger.read(read).result()


def hold(ledger: Ledger, cluster: str) -> None:
    """d1 holds something there; d2 does not."""
    one = node("n1", 4, 0, 0, 0)
    seen = ClusterObservation(cluster)
    seen.on_node(None, one)
    write(ledger, cluster, seen)
    taken = Claim(
        consumer=consumer_uuid("d1", "app", cluster),
        project="p",
        user="u",
        allocations={root_uuid(cluster, "n1"): {"CUSTOM_MILLICPU": 1}},
    )
    ledger.write(lambda tx: claims.replace(tx, [taken])).result()


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_the_ledger_is_what_a_fresh_list_gives(ledger: Ledger, steps: list[Any]) -> None:
    number = next(NUMBERS)
    followed, listed = f"p{number}+f", f"p{number}+l"
    for cluster in (followed, listed):
        hold(ledger, cluster)
    there: Objects = {}
    observation = ClusterObservation(followed)
    observation.note(["n1"])
    for step in steps:
        if isinstance(step, str):
            write(ledger, followed, observation)
        elif isinstance(step, tuple):
            old = there.pop(step, None)
            if old is not None:
                tell(observation, old, None)
        else:
            key = (type(step), step.key)
            tell(observation, there.get(key), step)
            there[key] = step
    write(ledger, followed, observation)

    fresh = ClusterObservation(listed)
    fresh.note(["n1"])
    for each in there.values():
        tell(fresh, None, each)
    write(ledger, listed, fresh)
    assert state(ledger, followed) == state(ledger, listed)
    faults = ledger.read(audit.examine).result().faults
    assert not [each for each in faults if each.kind != "overcommit"]
