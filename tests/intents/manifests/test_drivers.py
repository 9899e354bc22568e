"""Classes by which devices of DRA drivers were chosen, as claims have to ask for them."""

from __future__ import annotations

from dovetail.core.device import Device
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.dra.to_cel import to_device_class
from dovetail.intents.manifests.drivers import asking_drivers

LARGE = Expression("memory", Operator.GT_EQ, ("40Gi",))


def device(driver: str, kind: str = "", **properties: str) -> Device:
    own = {f"{driver}/{key}": value for key, value in properties.items()}
    return Device(
        node="n1",
        name=f"{driver}.n1.a",
        kind=kind or driver,
        properties={"Driver": driver, **properties, **own},
    )


def test_plain_names_are_looked_for_in_the_domain_of_the_driver() -> None:
    wanted = DeviceClass("large", ((LARGE,),))
    found = asking_drivers(wanted, [device("gpu.example.com", memory="80Gi")])
    assert found.selector == (
        (
            Expression("Driver", Operator.IN, ("gpu.example.com",)),
            Expression("gpu.example.com/memory", Operator.GT_EQ, ("40Gi",)),
        ),
    )
    (selector,) = to_device_class(found)["spec"]["selectors"]
    assert 'device.capacity["gpu.example.com"].memory' in selector["cel"]["expression"]


def test_each_driver_is_asked_in_its_own_words() -> None:
    wanted = DeviceClass("large", ((LARGE,),))
    devices = [device("b.example.com", memory="80Gi"), device("a.example.com", memory="80Gi")]
    found = asking_drivers(wanted, devices)
    assert [of[1].key for of in found.selector] == ["a.example.com/memory", "b.example.com/memory"]


def test_names_with_a_domain_stay() -> None:
    key = "resource.kubernetes.io/pcieRoot"
    wanted = DeviceClass("near", ((Expression(key, Operator.EXISTS),),))
    found = asking_drivers(wanted, [device("gpu.example.com")])
    assert found.selector[0][1].key == key


def test_a_kind_is_asked_for_where_the_driver_tells_it() -> None:
    wanted = DeviceClass("gpus", ((Expression("Kind", Operator.IN, ("gpu",)),),))
    by_type = asking_drivers(wanted, [device("gpu.example.com", kind="gpu", type="gpu")])
    assert by_type.selector[0][1].key == "gpu.example.com/type"
    by_driver = asking_drivers(wanted, [device("gpu.example.com")])
    assert by_driver.selector[0][1].key == "Driver"


def test_a_class_without_conditions_asks_for_the_driver() -> None:
    found = asking_drivers(DeviceClass("any"), [device("gpu.example.com")])
    assert found.selector == ((Expression("Driver", Operator.IN, ("gpu.example.com",)),),)


def test_devices_of_dovetail_are_asked_for_as_they_are() -> None:
    wanted = DeviceClass("large", ((LARGE,),))
    assert asking_drivers(wanted, [device("dovetail.dev", memory="80Gi")]) == wanted
    assert asking_drivers(wanted, []) == wanted
