"""Lists of devices that no node can have."""

from __future__ import annotations

import pytest

from dovetail.core.device import MOST_UNITS, Device, DeviceFault, faults_of

NO_NAME, NAME_TAKEN, UNITS = DeviceFault.NO_NAME, DeviceFault.NAME_TAKEN, DeviceFault.UNITS


def device(name: str, units: int = 1) -> Device:
    return Device(node="n1", name=name, kind="gpu", units=units)


def test_devices_with_names_of_their_own_have_no_faults() -> None:
    assert list(faults_of([device("a"), device("b", MOST_UNITS)])) == [(), ()]


def test_a_name_is_taken_by_the_first_that_has_it() -> None:
    names = ("a", "b", "a", "a")
    assert list(faults_of(map(device, names))) == [(), (), (NAME_TAKEN,), (NAME_TAKEN,)]


@pytest.mark.parametrize("units", [-1, 0, MOST_UNITS + 1])
def test_units_are_from_1_to_what_arrays_can_sum(units: int) -> None:
    assert list(faults_of([device("a", units)])) == [(UNITS,)]


def test_all_faults_are_told_the_name_first() -> None:
    found = list(faults_of([device("", 0), device("", 0), device("a", 0), device("a")]))
    assert found == [(NO_NAME, UNITS), (NO_NAME, NAME_TAKEN, UNITS), (UNITS,), (NAME_TAKEN,)]
