"""What is to be changed about a container that runs, and nothing more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.reconcile.settings_diff import description_of, difference, drift_of, is_narrowing

NOTHING = ContainerSettings()


def test_a_container_that_is_as_wanted_is_left_alone() -> None:
    wanted = ContainerSettings(
        cpus="0-3", mems="0", numbers={"CpuShares": 1024}, unified={"io.weight": "9"}
    )
    assert difference(wanted, NOTHING, wanted) == NOTHING


def test_only_the_fields_that_differ_are_changed() -> None:
    wanted = ContainerSettings(cpus="0-3", mems="0", numbers={"CpuShares": 2, "CpuQuota": 5})
    observed = ContainerSettings(cpus="0-7", mems="0", numbers={"CpuShares": 2, "CpuQuota": 4})
    assert difference(wanted, NOTHING, observed) == ContainerSettings(
        cpus="0-3", numbers={"CpuQuota": 5}
    )


def test_fields_that_no_plugin_sets_are_left_to_others() -> None:
    observed = ContainerSettings(
        cpus="0-7", mems="1", numbers={"CpuShares": 2}, hugepages={"2MB": 0}
    )
    assert difference(ContainerSettings(cpus="0-7"), NOTHING, observed) == NOTHING


def test_what_is_observed_counts_more_than_what_was_applied() -> None:
    wanted = ContainerSettings(cpus="0-3")
    assert difference(wanted, wanted, ContainerSettings(cpus="0-7")) == wanted
    assert difference(wanted, ContainerSettings(cpus="0-7"), wanted) == NOTHING


def test_what_the_runtime_does_not_show_is_applied_once() -> None:
    wanted = ContainerSettings(cpus="0-3", unified={"io.weight": "9"}, hugepages={"2MB": 4})
    observed = ContainerSettings(cpus="0-3")
    change = difference(wanted, NOTHING, observed)
    assert change == ContainerSettings(unified={"io.weight": "9"}, hugepages={"2MB": 4})
    assert difference(wanted, wanted, observed) == NOTHING


def test_environment_annotations_and_mounts_cannot_change_any_longer() -> None:
    assert (
        difference(ContainerSettings(envs={"A": "b"}, annotations={"c": "d"}), NOTHING, NOTHING)
        == NOTHING
    )


NUMBERS = st.dictionaries(st.sampled_from(["CpuShares", "CpuQuota"]), st.integers(1, 3))
SETTINGS = st.builds(
    ContainerSettings,
    cpus=st.sampled_from(["", "0", "0-1"]),
    mems=st.sampled_from(["", "0", "1"]),
    numbers=NUMBERS,
    unified=st.dictionaries(st.sampled_from(["io.weight"]), st.sampled_from(["1", "2"])),
)


def overlaid(below: ContainerSettings, above: ContainerSettings) -> ContainerSettings:
    """What the runtime shows after an update."""
    return ContainerSettings(
        cpus=above.cpus or below.cpus,
        mems=above.mems or below.mems,
        numbers={**below.numbers, **above.numbers},
        unified={**below.unified, **above.unified},
    )


@given(SETTINGS, SETTINGS, SETTINGS)
def test_after_the_change_there_is_no_difference(
    wanted: ContainerSettings, applied: ContainerSettings, observed: ContainerSettings
) -> None:
    change = difference(wanted, applied, observed)
    assert difference(wanted, wanted, overlaid(observed, change)) == NOTHING


def test_drift_is_what_somebody_else_changed_since() -> None:
    applied = ContainerSettings(cpus="0-3", numbers={"CpuShares": 2, "CpuQuota": 5})
    observed = ContainerSettings(cpus="0-7", mems="1", numbers={"CpuShares": 2, "CpuQuota": 4})
    assert drift_of(applied, observed) == ContainerSettings(cpus="0-7", numbers={"CpuQuota": 4})


@pytest.mark.parametrize(
    "unseen", [NOTHING, ContainerSettings(mems="1"), ContainerSettings(numbers={"CpuQuota": 1})]
)
def test_what_cannot_be_seen_has_not_drifted(unseen: ContainerSettings) -> None:
    assert drift_of(ContainerSettings(cpus="0-3", numbers={"CpuShares": 2}), unseen) == NOTHING


@pytest.mark.parametrize(
    ("after", "before", "narrower"),
    [
        ("0-1", "0-3", True),
        ("0-3", "0-3", False),
        ("0-1,4", "0-3", False),
        ("", "0-3", False),
        ("0-1", "", False),
        ("0-1", "x", False),
    ],
)
def test_who_only_loses_cpus_is_told_apart(after: str, before: str, narrower: bool) -> None:
    assert is_narrowing(ContainerSettings(cpus=after), ContainerSettings(cpus=before)) is narrower


def test_a_change_is_logged_by_its_fields() -> None:
    assert description_of(
        ContainerSettings(cpus="1", unified={"io.weight": "9"}, envs={"A": "b"})
    ) == {
        "cpus": "1",
        "unified": {"io.weight": "9"},
    }
