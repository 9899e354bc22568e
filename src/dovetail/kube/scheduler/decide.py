"""Decision about one pod: the node it goes to and the devices it gets, or why it goes nowhere.

The scheduling loop calls `Decider.decide` once for each turn of a pod. Filter, score, choose:
podfit says which nodes have room and how good each is, the device inventory which have the devices,
and the devices of the best node are chosen. `holdings_for` resumes a decision of which only the
claim is left. Pure: no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from dovetail.core.columns import Mask
from dovetail.core.explanation_text import summary_of_nodes
from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest, units_by_class
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.kube.scheduler.pod_requirements import PodRequirements
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.filtered_nodes import FilteredNodes

DEVICE_WEIGHT = 300.0
"""What a strategy's preference for a node, 0 to 1, is worth. Room is worth 100 at most, a soft
taint 300, a preferred label 200: the strategy decides, unless the pod or the node prefers."""
BY_ROOM = (Strategy.FIRST_FIT, Strategy.STRICT_FIRST_FIT)
"""Strategies without a preference among nodes."""


class Choice(msgspec.Struct, frozen=True):
    node: str
    holdings: tuple[DeviceHolding, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    why: str


class Decider:
    """Refusals are remembered: of ten thousand pods of one template, one is looked at."""

    def __init__(self, state: ClusterState, strategy: Strategy) -> None:
        self._state = state
        self._strategy = strategy
        self._refused: dict[PodRequirements, tuple[int, Refusal]] = {}

    def forget_refusals(self) -> None:
        """Whoever is decided about next is looked at afresh."""
        self._refused.clear()

    def decide(self, required: PodRequirements) -> Choice | Refusal:
        change_count = self._state.change_count(required.wake_on)
        known = self._refused.get(required)
        if known is not None and known[0] == change_count:
            return known[1]
        found = choice_of(self._state, required, self._strategy)
        if isinstance(found, Refusal):
            if len(self._refused) > 4096:
                self._refused.clear()
            self._refused[required] = (change_count, found)
        return found

    def decide_with_claim(self, required: PodRequirements, uid: str) -> Choice | Refusal:
        """For a pod without classes that the ledger holds devices for: unlike others of its
        template, it has room where these are."""
        with self._state.own_claim_as_room(uid, required.direct):
            return choice_of(self._state, required, self._strategy)


def choice_of(
    state: ClusterState, required: PodRequirements, strategy: Strategy
) -> Choice | Refusal:
    # 1. Nodes with room, and among them those with devices.
    filtered = state.nodes.filter(required.pod_request)
    mask = filtered.mask
    if required.device_requests:
        lacking = [
            request.class_name
            for request in required.device_requests
            if request.class_name not in state.classes
        ]
        if lacking:
            return Refusal(f"there is no resource class {lacking[0]!r}.")
        mask = mask & state.inventory.fits(required.device_requests, strategy)
    if not mask.any():
        return Refusal(refusal_text(state, required, filtered, strategy))
    # 2. The best of them.
    score = state.nodes.score(required.pod_request, mask)
    if required.device_requests and strategy not in BY_ROOM:
        score += DEVICE_WEIGHT * state.inventory.scores(required.device_requests, strategy)
    # 3. Its devices.
    row = int(score.argmax())
    while score[row] > -np.inf:
        node = state.rows.names[row]
        holdings = device_choice(state, node, required, strategy)
        if holdings is not None:
            return Choice(node, holdings)
        # Room and devices are there, but not for both sorts of requests; or the strategy does not
        # find them in reasonable time.
        score[row] = -np.inf
        row = int(score.argmax())
    return Refusal(refusal_text(state, required, filtered, strategy))


def device_choice(
    state: ClusterState, node: str, required: PodRequirements, strategy: Strategy
) -> tuple[DeviceHolding, ...] | None:
    """Devices of the node beside what the pod uses of it directly; None if there are too few."""
    if not required.device_requests:
        return ()
    if not required.direct:
        return state.inventory.choose(node, required.device_requests, strategy)
    with state.holders.using(node, required.direct):
        return state.inventory.choose(node, required.device_requests, strategy)


def refusal_text(
    state: ClusterState, required: PodRequirements, filtered: FilteredNodes, strategy: Strategy
) -> str:
    reasons = filtered.reasons()
    nodes = sum(1 for name in state.rows.names if name and state.has_node(name))
    if not required.device_requests:
        return summary_of_nodes(0, nodes, reasons)
    roomy = filtered.mask
    example = ""
    if roomy.any():
        reasons += class_reasons(state, required.device_requests, roomy)
        example = f" {nearest_text(state, required, roomy, strategy)}"
    return summary_of_nodes(0, nodes, reasons) + example


def class_reasons(
    state: ClusterState, device_requests: tuple[DeviceRequest, ...], roomy: Mask
) -> Counter[str]:
    """How many nodes with room lack units of which class; each counts for the first it lacks."""
    found: Counter[str] = Counter()
    left = roomy.copy()
    for name, count in units_by_class(device_requests).items():
        short = left & (state.inventory.free(name) < count)
        if short.any():
            found[f"node(s) with too few free devices of resource class {name}"] = int(short.sum())
        left &= ~short
    if left.any():
        found["node(s) whose free devices do not suffice for all classes at once"] = int(left.sum())
    return found


def nearest_text(
    state: ClusterState, required: PodRequirements, roomy: Mask, strategy: Strategy
) -> str:
    """What the node lacks that lacks least."""
    lack = np.zeros(len(roomy))
    for name, count in units_by_class(required.device_requests).items():
        lack += np.clip(count - state.inventory.free(name), 0, None)
    row = int(np.where(roomy, lack, np.inf).argmin())
    node = state.rows.names[row]
    with state.holders.using(node, required.direct):
        why = state.inventory.why_not(node, required.device_requests, state.name_of, strategy)
    return f"Nearest is {node}: {why}."


def holdings_for(
    state: ClusterState, device_requests: Sequence[DeviceRequest], node: str, claimed: Amounts
) -> tuple[DeviceHolding, ...] | None:
    """Which of the claimed devices are for which request; None if they are for other requests.

    The ledger does not say for which request a device was claimed. Devices are dealt out as if the
    node had nothing else, so that everybody who adopts the claim deals them out alike.
    """
    there = {each.name: each for each in state.devices.get(node, ())}
    if claimed.keys() - there.keys():
        return None
    # Claimed is claimed, whatever the device's health is now: its pod will be told.
    devices = [
        replace(there[name], units=units, healthy=True) for name, units in sorted(claimed.items())
    ]
    inventory = DeviceInventory(Rows())
    for each in state.classes.values():
        inventory.set_class(each)
    inventory.set_node(node, devices)
    found = inventory.choose(node, device_requests)
    if found is None or sum(each.units for each in found) != sum(claimed.values()):
        return None
    return found
