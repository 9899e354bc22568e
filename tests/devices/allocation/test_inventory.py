"""The book by the specification's six flows, and by what was resolved where it is ambiguous."""

from __future__ import annotations

import msgspec
import pytest

from dovetail.core.device import Device
from dovetail.core.errors import BadDevices
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import BadExpression, Expression, Operator
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import (
    ClassStatus,
    DeviceHolding,
    DeviceRequest,
    HoldingConflict,
)
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.documents import DeviceClass, read
from tests.devices.fleets import device, inventory, nested, selecting, units

A, B = selecting("a"), selecting("b")


def place(
    kept: DeviceInventory, holder: str, node: str, *requests: DeviceRequest
) -> tuple[DeviceHolding, ...]:
    """A pod is put on the node."""
    found = kept.choose(node, requests)
    assert found is not None
    assert kept.hold(holder, node, found) == ()
    return found


# The six flows


def test_flow_1_class_creation_counts_the_devices_that_are_there() -> None:
    kept = inventory([], [device("d1", "a", units=4)], [device("d2", "a"), device("d3")])
    kept.set_class(A)
    assert kept.status("a") == ClassStatus(5, 0)
    assert kept.changed_classes() == {"a"}


def test_flow_2_class_deletion_forgets_it() -> None:
    kept = inventory([A, B], [device("d1", "ab")])
    kept.drop_class("a")
    with pytest.raises(KeyError):
        kept.status("a")
    assert kept.free("a").tolist() == [0]
    assert kept.status("b") == ClassStatus(1, 0)
    assert kept.changed_classes() == {"b"}


def test_flow_3_node_addition_counts_for_every_class_that_selects_its_devices() -> None:
    kept = inventory([A, B, selecting("c")])
    kept.changed_classes()
    kept.set_node("n1", [device("d1", "a", units=2), device("d2", "ab")])
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(3, 0), ClassStatus(1, 0))
    assert kept.changed_classes() == {"a", "b"}


def test_flow_4_node_deletion_takes_its_devices_away() -> None:
    kept = inventory([A, B], [device("d1", "ab", units=2)], [device("d2", "a")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    kept.changed_classes()
    kept.drop_node("n1")
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(1, 0), ClassStatus(0, 0))
    assert kept.changed_classes() == {"a", "b"}


def test_flow_5_pod_creation_filters_chooses_and_holds() -> None:
    kept = inventory([A, B], [device("d1", "a")], [device("d1", "ab"), device("d2", "a")])
    requests = [DeviceRequest("a", 2, "main")]
    assert kept.fits(requests).tolist() == [False, True]
    found = kept.choose("n2", requests)
    assert found == (DeviceHolding("d1", 1, "a", "main"), DeviceHolding("d2", 1, "a", "main"))
    kept.hold("pod", "n2", found)
    assert kept.holdings_of("pod") == ("n2", found)
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(3, 2), ClassStatus(1, 1))
    assert kept.free("a").tolist() == [1, 0]


def test_flow_6_pod_deletion_gives_everything_back() -> None:
    kept = inventory([A, B], [device("d1", "ab", units=3)])
    place(kept, "other", "n1", DeviceRequest("b", 1))
    kept.changed_classes()
    place(kept, "pod", "n1", DeviceRequest("a", 2))
    assert kept.changed_classes() == {"a", "b"}
    kept.release("pod")
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(3, 1), ClassStatus(3, 1))
    assert kept.holdings_of("pod") is None
    assert kept.changed_classes() == {"a", "b"}


# The rows of the table of ambiguities


def test_row_1_requested_rises_with_a_pod_and_available_falls() -> None:
    kept = inventory([A], [device("d1", "a", units=4)])
    place(kept, "pod", "n1", DeviceRequest("a", 3))
    assert kept.status("a") == ClassStatus(allocatable=4, requested=3)
    assert kept.status("a").available == 1


def test_row_2_a_device_counts_for_every_class_whoever_asked() -> None:
    kept = inventory([A, B], [device("d1", "ab"), device("d2", "a")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(2, 1), ClassStatus(1, 1))


def test_row_3_totals_do_not_make_a_node_fit() -> None:
    kept = inventory([A], [device("d1", "a")], [device("d2", "a")])
    assert kept.status("a").available == 2
    assert kept.fits([DeviceRequest("a", 2)]).tolist() == [False, False]


def test_row_4_a_request_spans_devices_in_order() -> None:
    kept = inventory([A], [device("d2", "a", units=4), device("d1", "a", units=3)])
    assert units(kept.choose("n1", [DeviceRequest("a", 5)])) == {"a": {"d1": 3, "d2": 2}}


def test_row_4_single_device_takes_all_units_from_one() -> None:
    whole = selecting("whole", "a", single=True)
    kept = inventory([whole], [device("d1", "a", units=3), device("d2", "a", units=4)])
    assert units(kept.choose("n1", [DeviceRequest("whole", 4)])) == {"whole": {"d2": 4}}
    assert kept.choose("n1", [DeviceRequest("whole", 5)]) is None
    assert kept.fits([DeviceRequest("whole", 5)]).tolist() == [False]
    assert (
        kept.why_not("n1", [DeviceRequest("whole", 5)])
        == "class whole: no single device has 5 free"
    )


def test_row_5_two_overlapping_classes_find_the_one_solution() -> None:
    kept = inventory([A, B], [device("d1", "ab"), device("d2", "a")])
    requests = [DeviceRequest("a", 1), DeviceRequest("b", 1)]
    assert units(kept.choose("n1", requests)) == {"a": {"d2": 1}, "b": {"d1": 1}}
    assert kept.fits(requests).tolist() == [True]


def test_row_5_strict_first_fit_does_not() -> None:
    kept = inventory([A, B], [device("d1", "ab"), device("d2", "a")])
    requests = [DeviceRequest("a", 1), DeviceRequest("b", 1)]
    assert kept.choose("n1", requests, Strategy.STRICT_FIRST_FIT) is None
    assert kept.fits(requests, Strategy.STRICT_FIRST_FIT).tolist() == [False]
    turned = requests[::-1]
    found = kept.choose("n1", turned, Strategy.STRICT_FIRST_FIT)
    assert units(found) == {"a": {"d2": 1}, "b": {"d1": 1}}


def test_row_5_strict_first_fit_minds_the_order_of_devices() -> None:
    """Both nodes have the same devices, by other names."""
    kept = inventory(
        [A, B],
        [device("d1", "ab"), device("d2", "a")],
        [device("d1", "a"), device("d2", "ab")],
    )
    requests = [DeviceRequest("a", 1), DeviceRequest("b", 1)]
    assert kept.fits(requests, Strategy.STRICT_FIRST_FIT).tolist() == [False, True]
    assert kept.fits(requests[::-1], Strategy.STRICT_FIRST_FIT).tolist() == [True, True]
    assert kept.why_not("n1", requests) == ""
    assert kept.why_not("n1", requests, strategy=Strategy.STRICT_FIRST_FIT) == (
        "strictFirstFit takes class after class and never exchanges devices: enough is free for"
        " a, b, but what goes to the first is what a later one needs"
    )


def test_row_6_devices_are_ordered_by_kind_and_name() -> None:
    listed = [
        Device(node="n1", name="b", kind="gpu", properties={"a": ""}),
        Device(node="n1", name="a", kind="gpu", properties={"a": ""}),
        Device(node="n1", name="c", kind="fpga", properties={"a": ""}),
    ]
    kept = inventory([A], listed)
    found = kept.choose("n1", [DeviceRequest("a", 2)])
    assert found is not None
    assert [each.device for each in found] == ["c", "a"]


def test_row_7_a_class_created_after_pods_run_counts_what_they_hold() -> None:
    kept = inventory([A], [device("d1", "ab", units=3)])
    place(kept, "pod", "n1", DeviceRequest("a", 2))
    kept.set_class(B)
    assert kept.status("b") == ClassStatus(3, 2)


def test_row_8_devices_stay_held_when_their_class_is_deleted() -> None:
    kept = inventory([A, B], [device("d1", "ab")])
    held = place(kept, "pod", "n1", DeviceRequest("a", 1))
    kept.drop_class("a")
    assert kept.holdings_of("pod") == ("n1", held)
    assert kept.status("b") == ClassStatus(1, 1)
    kept.set_class(A)
    assert kept.status("a") == ClassStatus(1, 1)


def test_row_9_unhealthy_units_leave_allocatable_and_requested_together() -> None:
    kept = inventory([A], [device("d1", "a", units=2), device("d2", "a")])
    held = place(kept, "pod", "n1", DeviceRequest("a", 2))
    kept.set_node("n1", [device("d1", "a", units=2, healthy=False), device("d2", "a")])
    assert kept.status("a") == ClassStatus(1, 0)
    assert kept.holdings_of("pod") == ("n1", held)
    kept.set_node("n1", [device("d1", "a", units=2), device("d2", "a")])
    assert kept.status("a") == ClassStatus(3, 2)


def test_row_9_a_held_device_that_disappears_and_returns_is_still_held() -> None:
    kept = inventory([A], [device("d1", "a")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    kept.set_node("n1", [])
    assert kept.status("a") == ClassStatus(0, 0)
    kept.drop_node("n1")
    kept.set_node("n1", [device("d1", "a")])
    assert kept.status("a") == ClassStatus(1, 1)
    assert kept.choose("n1", [DeviceRequest("a", 1)]) is None
    kept.release("pod")
    assert kept.status("a") == ClassStatus(1, 0)


def test_row_9_an_edited_property_moves_a_device_between_classes() -> None:
    kept = inventory([A, B], [device("d1", "a")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    kept.set_node("n1", [device("d1", "b")])
    assert (kept.status("a"), kept.status("b")) == (ClassStatus(0, 0), ClassStatus(1, 1))


def test_row_9_a_pool_that_shrinks_below_what_is_held_is_never_over_held() -> None:
    kept = inventory([A], [device("d1", "a", units=8)])
    place(kept, "old", "n1", DeviceRequest("a", 4))
    place(kept, "young", "n1", DeviceRequest("a", 3))
    kept.set_node("n1", [device("d1", "a", units=5)])
    assert kept.status("a") == ClassStatus(5, 5)
    assert kept.units_by_holder("n1", "d1") == {"old": 4, "young": 1}
    assert kept.conflicts() == (HoldingConflict("young", "n1", "d1", 3, 1, ("old",)),)


def test_row_10_a_restart_rebuilds_the_book_and_the_older_holder_wins() -> None:
    holding = [DeviceHolding("d1", 1, "a")]
    kept = inventory([A], [device("d1", "a")])
    assert kept.hold("old", "n1", holding) == ()
    clash = HoldingConflict("young", "n1", "d1", 1, 0, ("old",))
    assert kept.hold("young", "n1", holding) == (clash,)
    assert kept.units_by_holder("n1", "d1") == {"old": 1, "young": 0}
    assert kept.status("a") == ClassStatus(1, 1)
    kept.release("old")
    assert (kept.status("a"), kept.conflicts()) == (ClassStatus(1, 1), ())


def test_row_10_holders_may_be_known_before_their_node() -> None:
    kept = inventory([A])
    kept.hold("old", "n1", [DeviceHolding("d1", 1, "a")])
    assert kept.hold("young", "n1", [DeviceHolding("d1", 1, "a")]) == ()
    kept.set_node("n1", [device("d1", "a")])
    assert [each.holder for each in kept.conflicts()] == ["young"]
    assert kept.status("a") == ClassStatus(1, 1)


def test_row_11_a_binding_that_failed_is_forgotten() -> None:
    kept = inventory([A], [device("d1", "a")])
    before = kept.status("a"), kept.free("a").tolist()
    place(kept, "assumed", "n1", DeviceRequest("a", 1))
    kept.release("assumed")
    assert (kept.status("a"), kept.free("a").tolist()) == before


def test_row_11_what_was_assumed_is_confirmed_without_a_change() -> None:
    kept = inventory([A], [device("d1", "a")])
    held = place(kept, "pod", "n1", DeviceRequest("a", 1))
    kept.changed_classes()
    assert kept.hold("pod", "n1", held) == ()
    assert kept.changed_classes() == frozenset()


def test_row_12_less_than_one_unit_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match=r"0 of class 'a': at least 1"):
        DeviceRequest("a", 0)
    with pytest.raises(ValueError, match=r"0 units of device 'd': at least 1"):
        DeviceHolding("d", 0)


def test_row_13_holdings_say_which_container_has_what() -> None:
    kept = inventory([A, B], [device("d1", "ab", units=3)])
    requests = [
        DeviceRequest("a", 1, "first"),
        DeviceRequest("a", 1, "second"),
        DeviceRequest("b", 1, "second"),
    ]
    assert kept.choose("n1", requests) == (
        DeviceHolding("d1", 1, "a", "first"),
        DeviceHolding("d1", 1, "a", "second"),
        DeviceHolding("d1", 1, "b", "second"),
    )


def test_row_23_a_unit_is_never_shared() -> None:
    kept = inventory([A, B], [device("d1", "ab")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    assert kept.choose("n1", [DeviceRequest("b", 1)]) is None
    assert kept.fits([DeviceRequest("b", 1)]).tolist() == [False]


# Beyond the specification


def test_foreign_holders_count_like_any_other() -> None:
    kept = inventory([A], [device("d1", "a", units=4)])
    assert kept.hold("a placement client", "n1", [DeviceHolding("d1", 3)]) == ()
    assert kept.status("a") == ClassStatus(4, 3)


def test_a_holder_that_holds_something_else_gives_the_old_back() -> None:
    kept = inventory([A], [device("d1", "a")], [device("d1", "a")])
    place(kept, "pod", "n1", DeviceRequest("a", 1))
    place(kept, "pod", "n2", DeviceRequest("a", 1))
    assert kept.free("a").tolist() == [1, 0]


def test_properties_no_class_looks_at_do_not_matter_until_one_does() -> None:
    kept = inventory([A], [device("d1", "a", serial="1"), device("d2", "a", serial="2")])
    assert kept.status("a") == ClassStatus(2, 0)
    first = ((Expression("serial", Operator.EQ, ("1",)),),)
    kept.set_class(DeviceClass("first", first))
    assert kept.status("first") == ClassStatus(1, 0)
    kept.drop_class("first")
    assert kept.status("a") == ClassStatus(2, 0)


def test_devices_can_be_selected_by_name_vendor_kind_and_health() -> None:
    listed = [
        Device(node="n1", name="x", kind="gpu", vendor="acme"),
        Device(node="n1", name="y", kind="nic", vendor="acme"),
        Device(node="n1", name="z", kind="nic", healthy=False),
    ]
    pairs = {"Name": "x", "Vendor": "acme", "Kind": "nic", "Health": "Healthy"}
    classes = [
        DeviceClass(key.lower(), ((Expression(key, Operator.IN, (value,)),),))
        for key, value in pairs.items()
    ]
    kept = inventory(classes, listed)
    assert [kept.status(each.name).allocatable for each in classes] == [1, 2, 1, 2]


def test_devices_that_differ_in_health_only_are_told_apart() -> None:
    healthy = DeviceClass("healthy", ((Expression("Health", Operator.IN, ("Healthy",)),),))
    kept = inventory([healthy], [device("d1", healthy=False), device("d2")])
    assert kept.status("healthy") == ClassStatus(1, 0)


def test_rows_of_nodes_the_book_does_not_know_have_nothing() -> None:
    rows = Rows()
    rows.row("elsewhere")
    kept = DeviceInventory(rows)
    kept.set_class(A)
    kept.set_node("n1", [device("d1", "a")])
    assert kept.free("a").tolist() == [0, 1]
    assert kept.fits([DeviceRequest("a", 1)]).tolist() == [False, True]
    assert kept.fits([]).tolist() == [True, True]
    assert kept.scores([DeviceRequest("a", 1)], Strategy.SPREAD).shape == (2,)


def test_a_row_that_another_node_has_got_is_that_nodes() -> None:
    rows = Rows()
    kept = DeviceInventory(rows)
    kept.set_class(A)
    kept.set_node("old", [device("d1", "a", units=5)])
    rows.drop("old")
    kept.set_node("new", [device("d1", "a", units=2)])
    kept.drop_node("old")
    assert kept.free("a").tolist() == [2]
    assert kept.status("a") == ClassStatus(2, 0)


def test_a_node_without_devices_or_unknown_gets_no_pods() -> None:
    kept = inventory([A], [], [device("d1", "a")])
    requests = [DeviceRequest("a", 1)]
    assert kept.fits(requests).tolist() == [False, True]
    assert kept.choose("nowhere", requests) is None
    assert kept.why_not("nowhere", requests) == "node nowhere has no devices"


def test_a_class_that_does_not_exist_fits_nowhere() -> None:
    kept = inventory([A], [device("d1", "a")])
    requests = [DeviceRequest("a", 1), DeviceRequest("mistyped", 1)]
    assert kept.fits(requests).tolist() == [False]
    assert kept.choose("n1", requests) is None
    assert kept.why_not("n1", requests) == "there is no class mistyped"


def test_why_not_says_how_much_is_asked_and_free_and_who_holds_the_rest() -> None:
    kept = inventory([A], [device("d1", "a", units=5)])
    for holder in "pqrs":
        place(kept, holder, "n1", DeviceRequest("a", 1))
    assert kept.why_not(
        "n1", [DeviceRequest("a", 1), DeviceRequest("a", 1)], name_of="pod {}".format
    ) == ("class a: 2 asked, 1 of 5 free, held by pod p, pod q, pod r and 1 more")
    assert kept.why_not("n1", [DeviceRequest("a", 1)]) == ""


def test_why_not_says_that_classes_get_into_each_others_way() -> None:
    kept = inventory([A, B], [device("d1", "ab")])
    assert kept.why_not("n1", [DeviceRequest("a", 1), DeviceRequest("b", 1)]) == (
        "enough of each class is free, but not of all together: a, b"
    )


def test_two_devices_of_one_name_change_nothing() -> None:
    kept = inventory([A], [device("d1", "a")])
    with pytest.raises(BadDevices, match="node 'n1': two devices are called d2"):
        kept.set_node("n1", [device("d2", "a"), device("d2", "a")])
    for count in (0, 2**31, 10**30):
        with pytest.raises(BadDevices, match=f"device 'd3' has {count} units: 1 to 2147483647"):
            kept.set_node("n2", [device("d3", "a", units=count)])
    assert (kept.status("a"), kept.free("a").tolist()) == (ClassStatus(1, 0), [1])


def test_a_class_that_cannot_be_evaluated_changes_nothing() -> None:
    kept = inventory([A], [device("d1", "a")])
    bad = DeviceClass("a", ((Expression("a", Operator.IN),),))
    with pytest.raises(BadExpression):
        kept.set_class(bad)
    assert kept.status("a") == ClassStatus(1, 0)


def test_the_same_news_again_is_no_change() -> None:
    kept = inventory([A], [device("d1", "a")])
    kept.changed_classes()
    kept.set_node("n1", [device("d1", "a")])
    kept.set_class(msgspec.structs.replace(A))
    assert kept.changed_classes() == frozenset()


def test_a_class_made_again_is_reported_again() -> None:
    """Its status is a new object's, even if the numbers are the same."""
    kept = inventory([A], [device("d1", "a")])
    kept.changed_classes()
    kept.drop_class("a")
    kept.set_class(A)
    assert kept.changed_classes() == {"a"}


def test_free_units_are_not_written_to_from_outside() -> None:
    kept = inventory([A], [device("d1", "a")])
    with pytest.raises(ValueError, match="read-only"):
        kept.free("a")[0] = 7


def test_nodes_in_the_same_state_share_an_answer_until_one_changes() -> None:
    kept = inventory([A, B], *([device("d1", "ab"), device("d2", "a")] for _ in range(3)))
    requests = [DeviceRequest("a", 1), DeviceRequest("b", 1)]
    assert kept.fits(requests).tolist() == [True, True, True]
    place(kept, "pod", "n2", DeviceRequest("b", 1))
    assert kept.fits(requests).tolist() == [True, False, True]
    kept.release("pod")
    kept.set_node("n3", [device("d1", "ab")])
    assert kept.fits(requests).tolist() == [True, True, False]
    kept.set_class(selecting("a", "b"))
    assert kept.fits(requests).tolist() == [False, False, False]


def test_classes_read_from_documents_are_counted() -> None:
    spec = {
        "resourceSelector": [
            {"matchExpressions": [{"key": "memory", "operator": "GtEq", "values": ["30G"]}]}
        ]
    }
    large = read("nvidia.high.mem", spec)
    kept = inventory([large], [device("d1", memory="40G"), device("d2", memory="16G")])
    assert kept.status("nvidia.high.mem") == ClassStatus(1, 0)


def test_columns_of_deleted_classes_are_used_again() -> None:
    kept = inventory([A, B], [device("d1", "ab", units=2), device("d2", "b")])
    assert kept.status("b") == ClassStatus(3, 0)
    kept.drop_class("a")
    kept.set_class(nested("pair", {"b": 2}))
    assert (kept.status("pair"), kept.status("b")) == (ClassStatus(1, 0), ClassStatus(3, 0))
    kept.drop_class("pair")
    kept.set_class(A)
    assert kept.status("a") == ClassStatus(2, 0)
