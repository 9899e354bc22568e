"""Devices in manifests: by class, by claim, by a device plugin's resource."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes import documents
from dovetail.devices.classes.documents import DeviceClass, Member
from dovetail.intents.group import (
    AnyRequirement,
    DeviceRequirement,
    HpaIntent,
    ManifestObject,
    ResourceConsumer,
)
from dovetail.intents.manifests.claims import dns_label
from dovetail.intents.manifests.editing import EditedApp, edited
from dovetail.intents.manifests.errors import Uneditable
from dovetail.intents.manifests.grants import AppGrants, ConsumerGrant, DeviceAccess, DeviceSource
from tests.intents.manifests.charts import amount, app, container, workload

Json = dict[str, Any]
LARGE = DeviceClass(
    "large", selector=((Expression("gpu.example.com/memory", Operator.GT_EQ, ("40Gi",)),),)
)
BY_CLASS = DeviceSource(access=DeviceAccess.CLASS, name="nvidia.high.mem", scheduler="dovetail")
BY_CLAIM = DeviceSource(access=DeviceAccess.CLAIM, name="gpu.example.com", definition=LARGE)


def gpus(count: int = 1, name: str = "gpus", **more: Any) -> DeviceRequirement:
    return DeviceRequirement(name=name, count=count, **{"class_name": "large", **more})


def edit(
    *requirements: AnyRequirement,
    optional: tuple[str, ...] = (),
    chart: Json | None = None,
    consumer: str = "trainer",
    **devices: DeviceSource,
) -> EditedApp:
    chart = chart or workload("Deployment")
    who = ResourceConsumer(
        name=consumer,
        kind=chart["kind"],
        object_name="web",
        container="main",
        requirements=requirements,
    )
    grant = ConsumerGrant(
        intent="i", consumer=consumer, optional=frozenset(optional), devices=devices
    )
    intents = [HpaIntent(name="i", app="shop", consumers=(who,))]
    return edited(app(chart), intents, AppGrants(deployment="d1", consumers=(grant,)), "default")


def pod(of: EditedApp) -> Json:
    spec = of.objects[0]["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def resources(of: EditedApp) -> Json:
    found = pod(of)["containers"][0]["resources"]
    assert isinstance(found, dict)
    return found


def beside(of: EditedApp, kind: str) -> ManifestObject:
    (found,) = [each for each in of.objects if each["kind"] == kind]
    return found


def test_a_class_of_the_cluster_is_a_resource_of_the_container() -> None:
    found = edit(gpus(2), gpus=BY_CLASS)
    wanted = {"resourceclass.dovetail.dev/nvidia.high.mem": "2"}
    assert resources(found) == {"requests": wanted, "limits": wanted}
    assert pod(found)["schedulerName"] == "dovetail"
    assert len(found.objects) == 1


def test_the_scheduler_of_the_chart_stays_unless_another_is_needed() -> None:
    plain = DeviceSource(access=DeviceAccess.CLASS, name="a")
    assert "schedulerName" not in pod(edit(gpus(), gpus=plain))


def test_requirements_of_one_class_add_up() -> None:
    """They are different devices."""
    more = gpus(1, "more", mandatory=False)
    name = "resourceclass.dovetail.dev/nvidia.high.mem"
    both = edit(gpus(2), more, optional=("more",), gpus=BY_CLASS, more=BY_CLASS)
    assert resources(both)["limits"] == {name: "3"}
    one = edit(gpus(2), more, gpus=BY_CLASS, more=BY_CLASS)
    assert resources(one)["limits"] == {name: "2"}


@pytest.mark.parametrize("source", [BY_CLASS, BY_CLAIM], ids=["class", "claim"])
def test_consumers_of_one_container_get_devices_each(source: DeviceSource) -> None:
    """Even if they have the same name, in different intents."""
    who = ResourceConsumer(
        name="same", kind="Pod", object_name="web", container="main", requirements=(gpus(2),)
    )
    intents = [HpaIntent(name=name, app="shop", consumers=(who,)) for name in ("i1", "i2")]
    grants = [
        ConsumerGrant(intent=each.name, consumer="same", devices={"gpus": source})
        for each in intents
    ]
    found = edited(
        app(workload("Pod")), intents, AppGrants(deployment="d", consumers=(*grants,)), "default"
    )
    given = found.objects[0]["spec"]["containers"][0]["resources"]
    if source is BY_CLASS:
        assert given["limits"] == {"resourceclass.dovetail.dev/nvidia.high.mem": "4"}
    else:
        assert given["claims"] == [{"name": "i1-same"}, {"name": "i2-same"}]
        assert [each["metadata"]["name"] for each in found.objects[1:]] == [
            "web-i1-same",
            "web-i2-same",
        ]


def test_devices_come_on_top_of_an_amount_of_the_same_resource() -> None:
    source = DeviceSource(access=DeviceAccess.RESOURCE, name="nvidia.com/gpu")
    found = edit(gpus(2), amount("nvidia.com/gpu", "1"), gpus=source)
    assert resources(found)["limits"] == {"nvidia.com/gpu": "3"}


def test_a_class_that_the_intent_brings_is_written_beside() -> None:
    source = DeviceSource(access=DeviceAccess.CLASS)
    found = edit(gpus(selector=LARGE, class_name=""), gpus=source)
    made = beside(found, "ResourceClass")
    name = made["metadata"]["name"]
    assert made["apiVersion"] == "dovetail.dev/v1alpha1"
    assert documents.read(name, made["spec"]).selector == LARGE.selector
    assert made["metadata"]["labels"]["dovetail.dev/deployment"] == "d1"
    assert resources(found)["limits"] == {f"resourceclass.dovetail.dev/{name}": "1"}


def test_a_device_plugins_resource_is_asked_for_by_its_name() -> None:
    source = DeviceSource(access=DeviceAccess.RESOURCE, name="nvidia.com/gpu")
    wanted = {"nvidia.com/gpu": "2"}
    assert resources(edit(gpus(2), gpus=source)) == {"requests": wanted, "limits": wanted}


def test_a_claim_is_a_template_beside_the_workload() -> None:
    found = edit(gpus(2), amount("cpu", "4"), gpus=BY_CLAIM)
    assert pod(found)["resourceClaims"] == [
        {"name": "i-trainer", "resourceClaimTemplateName": "web-i-trainer"}
    ]
    assert resources(found) == {"requests": {"cpu": "4"}, "claims": [{"name": "i-trainer"}]}
    made = beside(found, "ResourceClaimTemplate")
    assert made["apiVersion"] == "resource.k8s.io/v1"
    assert made["metadata"]["name"] == "web-i-trainer"
    (request,) = made["spec"]["spec"]["devices"]["requests"]
    assert request["name"] == "gpus"
    assert request["exactly"]["deviceClassName"] == "gpu.example.com"
    assert (request["exactly"]["count"], request["exactly"]["allocationMode"]) == (2, "ExactCount")
    (selector,) = request["exactly"]["selectors"]
    assert 'quantity("40Gi")' in selector["cel"]["expression"]


def test_devices_of_one_consumer_are_one_claim() -> None:
    found = edit(gpus(), gpus(2, "NICs"), gpus=BY_CLAIM, NICs=BY_CLAIM)
    requests = beside(found, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
    names = [each["name"] for each in requests]
    assert names[0] == "gpus"
    assert names[1].startswith("nics-")
    assert len(resources(found)["claims"]) == 1


def test_without_a_device_class_one_is_written_beside() -> None:
    source = DeviceSource(access=DeviceAccess.CLAIM, definition=LARGE)
    found = edit(gpus(), gpus=source)
    made = beside(found, "DeviceClass")
    (request,) = beside(found, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == made["metadata"]["name"]
    assert "selectors" not in request["exactly"]


def test_claims_of_the_chart_stay() -> None:
    own = {**container(), "resources": {"claims": [{"name": "own"}]}}
    claims = [{"name": "own", "resourceClaimName": "shared"}]
    found = edit(
        gpus(), chart=workload("Deployment", "web", own, resourceClaims=claims), gpus=BY_CLAIM
    )
    assert [each["name"] for each in pod(found)["resourceClaims"]] == ["own", "i-trainer"]
    assert [each["name"] for each in resources(found)["claims"]] == ["own", "i-trainer"]


def test_a_template_of_claims_is_in_the_namespace_of_its_workload() -> None:
    chart = workload("Deployment")
    chart["metadata"]["namespace"] = "edge"
    found = edit(gpus(), chart=chart, gpus=BY_CLAIM)
    assert beside(found, "ResourceClaimTemplate")["metadata"]["namespace"] == "edge"


def test_what_cannot_be_said_is_told() -> None:
    with pytest.raises(Uneditable, match="requirement gpus: where the devices come from is not"):
        edit(gpus())
    nowhere = DeviceSource(access=DeviceAccess.CLAIM)
    with pytest.raises(Uneditable, match="what devices of class 'large' are like is not known"):
        edit(gpus(), gpus=nowhere)
    nested = DeviceSource(
        access=DeviceAccess.CLAIM, definition=DeviceClass("pair", members=(Member("large", 2),))
    )
    with pytest.raises(Uneditable, match=r"gpus of consumer trainer: .*not made of others"):
        edit(gpus(), gpus=nested)


@pytest.mark.parametrize("text", ["Core_FW.1", "a" * 100, "-", "ünïcode", "web", "a.b", "9"])
def test_names_that_kubernetes_takes(text: str) -> None:
    found = dns_label(text)
    assert len(found) <= 63
    assert found.strip("-") == found
    assert found.replace("-", "a").isalnum()
    assert found.isascii()
    assert found == found.lower()


def test_names_that_differ_stay_different() -> None:
    texts = ["a.b", "a-b", "A-b", "a_b", "a--b", "x" * 70, "x" * 71]
    assert len({dns_label(each) for each in texts}) == len(texts)
