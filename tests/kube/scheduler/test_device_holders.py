"""Who holds what: a device is held while anybody says so, by nobody after all have unsaid it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.classes.documents import DeviceClass
from dovetail.kube.scheduler.device_holders import DeviceHolders, HeldOnNode, LedgerNews

GPU = DeviceClass("gpu", ((Expression("Kind", Operator.EQ, ("gpu",)),),))


def book() -> DeviceInventory:
    made = DeviceInventory(Rows())
    made.set_class(GPU)
    for node in ("n1", "n2"):
        made.set_node(node, [Device(node=node, name=name, kind="gpu") for name in ("g0", "g1")])
    return made


def held(node: str, *devices: str) -> HeldOnNode:
    return HeldOnNode(node, tuple(DeviceHolding(each, 1, "gpu", "main") for each in devices))


def requested(of: DeviceInventory) -> int:
    return of.status("gpu").requested


def test_a_plan_counts_until_the_ledger_and_the_pod_took_over() -> None:
    about = book()
    holders = DeviceHolders(about)
    holders.assume("p", held("n1", "g0"))
    assert requested(about) == 1
    holders.on_ledger("n1", {"g0": {"p": 1}})
    holders.on_pod("p", held("n1", "g0"))
    holders.forget("p")
    assert requested(about) == 1
    assert about.holdings_of("p") == ("n1", held("n1", "g0").holdings)


def test_a_look_at_the_ledger_from_before_a_claim_takes_nothing_back() -> None:
    about = book()
    holders = DeviceHolders(about)
    holders.assume("p", held("n1", "g0"))
    assert not holders.on_ledger("n1", {}).freed
    assert requested(about) == 1


def test_a_plan_that_came_to_nothing_leaves_what_is_claimed() -> None:
    about = book()
    holders = DeviceHolders(about)
    holders.assume("p", held("n1", "g0"))
    holders.on_ledger("n1", {"g0": {"p": 1}})
    holders.forget("p")
    assert holders.claim_of("p") == ("n1", {"g0": 1})
    assert requested(about) == 1
    holders.on_release("p")
    assert holders.claim_of("p") is None
    assert requested(about) == 0


def test_a_foreign_consumer_may_hold_devices_on_several_nodes() -> None:
    about = book()
    holders = DeviceHolders(about)
    holders.on_ledger("n1", {"g0": {"vm": 1}})
    holders.on_ledger("n2", {"g1": {"vm": 1}})
    assert requested(about) == 2
    assert about.choose("n2", [DeviceRequest("gpu", 2)]) is None
    assert holders.on_ledger("n1", {}) == LedgerNews(freed=True, consumers={"vm"})
    assert requested(about) == 1
    assert holders.on_ledger("n2", {}).freed
    assert requested(about) == 0


PLACES = st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from(["g0", "g1"]))
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["assume", "forget", "pod", "pod gone", "ledger", "ledger empty"]),
        st.sampled_from(["p", "q"]),
        PLACES,
    ),
    max_size=25,
)


def hear(holders: DeviceHolders, ledger: dict[str, tuple[str, str]]) -> None:
    for node in ("n1", "n2"):
        told: dict[str, dict[str, int]] = {}
        for consumer, (where, device) in ledger.items():
            if where == node:
                told.setdefault(device, {})[consumer] = 1
        holders.on_ledger(node, told)


@given(EVENTS)
def test_the_book_holds_what_any_witness_says_and_nothing_else(
    events: list[tuple[str, str, tuple[str, str]]],
) -> None:
    about = book()
    holders = DeviceHolders(about)
    assumed: dict[str, tuple[str, str]] = {}
    pods: dict[str, tuple[str, str]] = {}
    ledger: dict[str, tuple[str, str]] = {}
    for what, uid, place in events:
        if what.startswith("ledger"):
            ledger.pop(uid, None)
            ledger |= {uid: place} if what == "ledger" else {}
            hear(holders, ledger)
        elif what == "assume":
            assumed[uid] = place
            holders.assume(uid, held(*place))
        elif what == "forget":
            assumed.pop(uid, None)
            holders.forget(uid)
        else:
            pods.pop(uid, None)
            pods |= {uid: place} if what == "pod" else {}
            holders.on_pod(uid, held(*place) if what == "pod" else None)
    believed = set()
    for uid in ("p", "q"):
        for node in ("n1", "n2"):
            # On a node, the ledger's word counts before a plan's, and that before a pod's.
            said = [
                each[uid] for each in (ledger, assumed, pods) if each.get(uid, ("",))[0] == node
            ]
            believed.update(said[:1])
    in_book = {
        (node, name)
        for node in ("n1", "n2")
        for name in ("g0", "g1")
        if about.units_by_holder(node, name)
    }
    assert in_book == believed
