"""Affinity terms, spread constraints, ports and disks, resolved: equal ones are equal values.

Filters and scores decide once per distinct value. A selector of namespaces means those whose labels
it matches, as documented. (kube-scheduler 1.36 lets one that only asks for labels not to be there,
in a term of the pod to be placed, mean all.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from dovetail.podfit.objects import PodAffinityTerm, TopologySpreadConstraint, Volume
from dovetail.podfit.selectors import Labels, Selector, matches, selector_of, with_pod_values

HONOR = "Honor"


class SelectablePod(msgspec.Struct, frozen=True):
    """As much of a pod as the selectors of others can tell."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    leaving: bool = False
    """It is being deleted: it still counts, but not for spreading."""


class HostPort(msgspec.Struct, frozen=True):
    """A port of the host. The address 0.0.0.0 stands for all."""

    protocol: str
    number: int
    address: str


class InlineDisk(msgspec.Struct, frozen=True, order=True):
    """A disk that a volume of a pod names by itself, without a claim."""

    kind: str
    names: tuple[str, ...]
    monitors: tuple[str, ...] = ()
    """Of RBD: an image is the same where monitors are, one of them at least."""
    is_shared: bool = False
    """It may be used by others of which this is true, too: it is only read."""


class PodTerm(msgspec.Struct, frozen=True):
    """Pods that are selected, and the label of nodes whose values are the domains."""

    topology_key: str
    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector = None

    def selects(self, namespace: str, labels: Labels, namespaces: Mapping[str, Labels]) -> bool:
        """`namespaces`: the labels of those that are known."""
        there = namespace in self.namespaces or matches(
            self.namespace_selector, namespaces.get(namespace, {})
        )
        return there and matches(self.selector, labels)


class TopologySpread(msgspec.Struct, frozen=True):
    """No domain may have more than `skew` of these pods above the one with the fewest."""

    skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


def inline_disks_of(volumes: Iterable[Volume]) -> Iterator[InlineDisk]:
    """As kube-scheduler's VolumeRestrictions tells them apart; an EBS volume is never shared."""
    for volume in volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            is_shared = gce.get("readOnly", False)
            yield InlineDisk("gcePersistentDisk", (gce.get("pdName", ""),), (), is_shared)
        if (ebs := volume.aws_elastic_block_store) is not None:
            yield InlineDisk("awsElasticBlockStore", (ebs.get("volumeID", ""),))
        if (iscsi := volume.iscsi) is not None:
            is_shared = iscsi.get("readOnly", False)
            yield InlineDisk("iscsi", (iscsi.get("iqn", ""),), (), is_shared)
        if (rbd := volume.rbd) is not None:
            names = (rbd.get("pool", "rbd"), rbd.get("image", ""))
            monitors = tuple(sorted(rbd.get("monitors", ())))
            yield InlineDisk("rbd", names, monitors, rbd.get("readOnly", False))


def pod_term(term: PodAffinityTerm, namespace: str, labels: Labels) -> PodTerm:
    """`namespace` and `labels` are of the pod whose term it is."""
    own = () if term.namespaces or term.namespace_selector is not None else (namespace,)
    selector = selector_of(term.label_selector)
    selector = with_pod_values(selector, term.match_label_keys, labels, "In")
    selector = with_pod_values(selector, term.mismatch_label_keys, labels, "NotIn")
    return PodTerm(
        topology_key=term.topology_key,
        selector=selector,
        namespaces=tuple(sorted(term.namespaces)) or own,
        namespace_selector=selector_of(term.namespace_selector),
    )


def topology_spread_of(written: TopologySpreadConstraint, labels: Labels) -> TopologySpread:
    selector = selector_of(written.label_selector)
    return TopologySpread(
        skew=written.max_skew,
        topology_key=written.topology_key,
        selector=with_pod_values(selector, written.match_label_keys, labels, "In"),
        min_domains=written.min_domains or 1,
        honor_affinity=written.node_affinity_policy == HONOR,
        honor_taints=written.node_taints_policy == HONOR,
    )
