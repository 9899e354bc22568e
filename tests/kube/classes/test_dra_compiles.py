"""What classes become for dynamic resource allocation, a real API server takes."""

from __future__ import annotations

from typing import Any

from dovetail.core.selectors.selector import Expression, Operator, problems_of
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.dra import to_device_class
from tests.devices.selectors import KEYS, VALUES
from tests.support.kube.cluster import Cluster


def expressions() -> list[Expression]:
    """Every operator with every kind of value, and each key."""
    found = [Expression(key, Operator.EXISTS) for key in (*KEYS, "Kind", "gpu.example.com/model")]
    found += [Expression("ecc", Operator.DOES_NOT_EXIST), Expression("Driver", Operator.EXISTS)]
    found += [Expression("memory", operator, (value,)) for operator in Operator for value in VALUES]
    found.append(Expression("model", Operator.NOT_IN, VALUES))
    return [each for each in found if not problems_of(each)]


def translated() -> list[dict[str, Any]]:
    classes = [
        DeviceClass(f"class-{number}", ((each,),)) for number, each in enumerate(expressions())
    ]
    everything = DeviceClass("everything", tuple((each,) for each in expressions()[:60]))
    wide = Expression("model", Operator.IN, tuple(f"{number:064}" for number in range(120)))
    nothing = DeviceClass("nothing")
    return [
        to_device_class(each)
        for each in (*classes, everything, DeviceClass("wide", ((wide,),)), nothing)
    ]


def created(cluster: Cluster, *documents: dict[str, Any]) -> list[str]:
    """What the server says, line by line; nothing is made."""
    listed = {"apiVersion": "v1", "kind": "List", "items": documents}
    creating = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    return cluster.kubectl(*creating, given=listed, check=False).splitlines()


def test_translated_classes_are_taken(cluster: Cluster) -> None:
    documents = translated()
    assert len(documents) > 100
    assert created(cluster, *documents) == [
        f"deviceclass.resource.k8s.io/{each['metadata']['name']} created (server dry run)"
        for each in documents
    ]


def test_a_slip_in_the_expression_would_be_noticed(cluster: Cluster) -> None:
    """So being taken says something: the server compiles what it is given."""
    cls = DeviceClass("slipped", ((Expression("memory", Operator.GT_EQ, ("30G",)),),))
    document = to_device_class(cls)
    cel = document["spec"]["selectors"][0]["cel"]
    cel["expression"] = cel["expression"].replace("quantity(", "amount(")
    said = " ".join(created(cluster, document))
    assert "spec.selectors[0].cel.expression" in said
    assert "undeclared reference to 'amount'" in said
