"""Where the attributes that selectors look at are found on devices of dynamic resource allocation.

A key such as `memory` is found in Dovetail's own domain. Every value is there as text; a value that
is an amount is there a second time, typed, in a domain that tells its dimension, so that amounts of
different dimensions never meet:

    device.attributes["dovetail.dev"].memory          text, for In, NotIn, Exists, Eq
    device.capacity["dovetail.dev"].memory            amounts with a unit: bytes
    device.capacity["rate.dovetail.dev"].speed        rates, in bit/s
    device.capacity["number.dovetail.dev"].cores      bare numbers
    device.attributes["version.dovetail.dev"].driver  versions

A key with a domain, `gpu.example.com/memory`, is what a driver publishes itself: text and versions
among its attributes, amounts with a unit and bare numbers among its capacity. The key `Driver` is
the driver's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

import msgspec

from dovetail.core import quantity
from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.core.selectors import amount
from dovetail.core.selectors.amount import Amount, Dimension
from dovetail.devices.classes.cel.evaluate import CelDevice, Quantity, Semver
from dovetail.devices.classes.documents import DNS_SUBDOMAIN, Problem

DOMAIN = "dovetail.dev"
DRIVER = "Driver"
LONGEST_ID = 32
LONGEST_DOMAIN = 63
LONGEST_VALUE = 64
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Untranslatable(Malformed):
    """A class or device that cannot be said in the other language."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{name!r} cannot be translated: " + "; ".join(map(str, self.problems)))


class Inexpressible(Malformed):
    """A key or value that has no place on devices of dynamic resource allocation."""


class PublishedAt(msgspec.Struct, frozen=True):
    """Where values of a key are found. `dimension` is None for text."""

    holder: str
    """attributes or capacity; driver for the driver's name."""
    domain: str
    id: str
    dimension: Dimension | None = None

    @property
    def key(self) -> str:
        if self.holder == "driver":
            return DRIVER
        return self.id if self.ours else f"{self.domain}/{self.id}"

    @property
    def ours(self) -> bool:
        return (self.holder, self.domain) in DIMENSIONS


OURS: dict[Dimension | None, tuple[str, str]] = {
    None: ("attributes", DOMAIN),
    Dimension.SIZE: ("capacity", DOMAIN),
    Dimension.RATE: ("capacity", f"rate.{DOMAIN}"),
    Dimension.NUMBER: ("capacity", f"number.{DOMAIN}"),
    Dimension.VERSION: ("attributes", f"version.{DOMAIN}"),
}
DIMENSIONS = {place: dimension for dimension, place in OURS.items()}
HOLDERS = {
    None: "attributes",
    Dimension.SIZE: "capacity",
    Dimension.NUMBER: "capacity",
    Dimension.VERSION: "attributes",
}
"""Of what drivers publish themselves."""


def place_of(key: str, dimension: Dimension | None) -> PublishedAt:
    """Raises Inexpressible."""
    if key == DRIVER:
        if dimension is not None:
            raise Inexpressible(f"{DRIVER} is text, not {dimension}")
        return PublishedAt("driver", "", "")
    domain, slash, identifier = key.rpartition("/")
    if not IDENTIFIER.fullmatch(identifier) or len(identifier) > LONGEST_ID:
        raise Inexpressible(
            f"key {key!r}: a name of at most {LONGEST_ID} letters, digits and '_' is expected,"
            " a domain and '/' before it if a driver publishes it"
        )
    if not slash:
        return PublishedAt(*OURS[dimension], identifier, dimension)
    if not DNS_SUBDOMAIN.fullmatch(domain) or len(domain) > LONGEST_DOMAIN:
        raise Inexpressible(f"key {key!r}: {domain!r} is no domain")
    if dimension not in HOLDERS:
        raise Inexpressible(f"key {key!r}: drivers have no way to publish {dimension}")
    return PublishedAt(HOLDERS[dimension], domain, identifier, dimension)


def quantity_text(found: Amount, text: str) -> str:
    """The amount as Kubernetes reads it: as it is written if that can be, rates in bit/s."""
    if found.dimension is Dimension.NUMBER:
        return text
    if found.dimension is Dimension.SIZE and not text.endswith("B"):
        return text
    assert isinstance(found.size, int)
    return quantity.format(Fraction(found.size, quantity.ONE))


def semver_text(found: Amount, text: str) -> str:
    """Raises Inexpressible: semantic versions have three fields."""
    assert isinstance(found.size, tuple)
    fields = (*found.size, 0, 0)[: max(3, len(found.size))]
    if len(fields) > 3 or any(field >= 2**64 for field in fields):
        raise Inexpressible(f"{text!r} is no semantic version: these have three fields")
    return ".".join(map(str, fields))


def cel_device_of(device: Device) -> CelDevice:
    """The device as a driver that follows this convention publishes it. Raises Untranslatable."""
    attributes: dict[str, dict[str, str | int | bool | Semver]] = {}
    capacity: dict[str, dict[str, Quantity]] = {}
    values = device.attributes
    driver = values.pop(DRIVER, "")
    if DRIVER in device.properties and not driver:
        raise Untranslatable(device.name, [Problem(DRIVER, "a driver's name is never empty")])
    for key, value in values.items():
        try:
            if "/" in key or len(value) > LONGEST_VALUE:
                raise Inexpressible(f"a plain key and {LONGEST_VALUE} characters are possible")
            text = place_of(key, None)
            attributes.setdefault(text.domain, {})[text.id] = value
            found = amount.read(value)
            if found is not None:
                _publish(place_of(key, found.dimension), found, value, attributes, capacity)
        except Inexpressible as error:
            raise Untranslatable(device.name, [Problem(key, str(error))]) from error
    return CelDevice(driver, attributes, capacity)


def _publish(
    place: PublishedAt,
    found: Amount,
    text: str,
    attributes: dict[str, dict[str, str | int | bool | Semver]],
    capacity: dict[str, dict[str, Quantity]],
) -> None:
    if place.dimension is Dimension.VERSION:
        version = Semver.of(semver_text(found, text))
        assert version is not None
        attributes.setdefault(place.domain, {})[place.id] = version
    else:
        capacity.setdefault(place.domain, {})[place.id] = Quantity.of(quantity_text(found, text))
