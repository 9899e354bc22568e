"""Which nodes fit a pod, found node by node from the documented rules.

Written to be obviously right and nothing else: it reads the JSON, looks at every pod on every node
and shares no code with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

Json = dict[str, Any]
Labels = Mapping[str, str]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SUFFIXES: dict[str, str | int] = {
    "m": "0.001",
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}


class Oracle:
    def __init__(
        self, nodes: list[Json], placed: list[Json], namespaces: Mapping[str, Labels]
    ) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.on: dict[str, list[Json]] = {name: [] for name in self.nodes}
        for pod in placed:
            over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if pod["spec"]["nodeName"] in self.on and not over:
                self.on[pod["spec"]["nodeName"]].append(pod)
        self.namespaces = namespaces

    def fitting(self, pod: Json) -> set[str]:
        return {name for name in self.nodes if not self.misses(pod, name)}

    def misses(self, pod: Json, name: str) -> str:
        """The first rule that is broken; empty if none is."""
        node, there = self.nodes[name], self.on[name]
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("unschedulable", lambda: not cordoned(node, pod)),
            ("taints", lambda: not untolerated(node, pod)),
            ("node affinity", lambda: wanted(node, pod)),
            ("ports", lambda: ports_free(there, pod)),
            ("resources", lambda: enough(node, there, pod)),
            ("disks", lambda: disks_free(there, pod)),
            ("spread", lambda: self.spread_holds(node, pod)),
            ("affinity", lambda: self.affinity_holds(node, pod)),
            ("anti-affinity", lambda: self.anti_affinity_holds(node, pod)),
            ("existing anti-affinity", lambda: self.others_agree(node, pod)),
            ("features", lambda: features_needed(pod) <= features_declared(node)),
        )
        return next((rule for rule, holds in checks if not holds()), "")

    def pods(self) -> Iterator[tuple[Json, Json]]:
        for name, pods in self.on.items():
            for pod in pods:
                yield pod, self.nodes[name]

    def means(self, term: Json, owner: Json, pod: Json) -> bool:
        """Whether a term of the owner's affinity is about a pod."""
        space = pod["metadata"]["namespace"]
        if not term.get("namespaces") and term.get("namespaceSelector") is None:
            inside = space == owner["metadata"]["namespace"]
        else:
            inside = space in term.get("namespaces", []) or selects(
                term.get("namespaceSelector"), self.namespaces.get(space, {})
            )
        return inside and selects(with_keys(term, owner), labels(pod))

    def affinity_holds(self, node: Json, pod: Json) -> bool:
        terms = pod_terms(pod, "podAffinity")
        if any(term["topologyKey"] not in labels(node) for term in terms):
            return False
        meant = [
            (other, place)
            for other, place in self.pods()
            if all(self.means(term, pod, other) for term in terms)
            and any(term["topologyKey"] in labels(place) for term in terms)
        ]
        if not meant and all(self.means(term, pod, pod) for term in terms):
            return True
        return all(
            any(near(node, place, term["topologyKey"]) for _, place in meant) for term in terms
        )

    def anti_affinity_holds(self, node: Json, pod: Json) -> bool:
        return not any(
            self.means(term, pod, other) and near(node, place, term["topologyKey"])
            for term in pod_terms(pod, "podAntiAffinity")
            for other, place in self.pods()
        )

    def others_agree(self, node: Json, pod: Json) -> bool:
        return not any(
            self.means(term, other, pod) and near(node, place, term["topologyKey"])
            for other, place in self.pods()
            for term in pod_terms(other, "podAntiAffinity")
        )

    def spread_holds(self, node: Json, pod: Json) -> bool:
        all_of_them = pod["spec"].get("topologySpreadConstraints", [])
        hard = [one for one in all_of_them if one["whenUnsatisfiable"] == "DoNotSchedule"]
        keys = [one["topologyKey"] for one in hard]
        if any(key not in labels(node) for key in keys):
            return False
        return all(self.within_skew(node, pod, one, keys) for one in hard)

    def within_skew(self, node: Json, pod: Json, constraint: Json, keys: list[str]) -> bool:
        key = constraint["topologyKey"]
        selector = with_keys(constraint, pod)
        domains: dict[str, int] = {}
        for name, place in self.nodes.items():
            if any(one not in labels(place) for one in keys):
                continue
            if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not wanted(place, pod):
                continue
            if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor" and untolerated(place, pod):
                continue
            value = labels(place)[key]
            domains[value] = domains.get(value, 0) + sum(
                counts_for_spread(selector, other, pod) for other in self.on[name]
            )
        fewest = min(domains.values(), default=0)
        if len(domains) < constraint.get("minDomains", 1):
            fewest = 0
        itself = 1 if selects(selector, labels(pod)) else 0
        skew: int = constraint["maxSkew"]
        return domains.get(labels(node)[key], 0) + itself - fewest <= skew


def counts_for_spread(selector: Json | None, other: Json, pod: Json) -> bool:
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return False  # as kube-scheduler: an empty selector counts nobody
    return (
        other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "deletionTimestamp" not in other["metadata"]
        and selects(selector, labels(other))
    )


def labels(thing: Json) -> Labels:
    found: Labels = thing["metadata"].get("labels", {})
    return found


def near(node: Json, place: Json, key: str) -> bool:
    return key in labels(node) and key in labels(place) and labels(node)[key] == labels(place)[key]


def pod_terms(pod: Json, kind: str) -> list[Json]:
    found: list[Json] = pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])
    return found


def with_keys(term: Json, owner: Json) -> Json | None:
    """The label selector with matchLabelKeys and mismatchLabelKeys put in."""
    selector = term.get("labelSelector")
    if selector is None:
        return None
    extra = [
        {"key": key, "operator": operator, "values": [labels(owner)[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field, [])
        if key in labels(owner)
    ]
    return {**selector, "matchExpressions": selector.get("matchExpressions", []) + extra}


def selects(selector: Json | None, there: Labels) -> bool:
    if selector is None:
        return False
    if any(there.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(meets(one, there) for one in selector.get("matchExpressions", []))


def meets(expression: Json, there: Labels) -> bool:
    key, values = expression["key"], expression.get("values", [])
    match expression["operator"]:
        case "In":
            return key in there and there[key] in values
        case "NotIn":
            return key not in there or there[key] not in values
        case "Exists":
            return key in there
        case "DoesNotExist":
            return key not in there
        case "Gt":
            return there.get(key, "").isdecimal() and int(there[key]) > int(values[0])
        case "Lt":
            return there.get(key, "").isdecimal() and int(there[key]) < int(values[0])
    raise AssertionError(expression)


def cordoned(node: Json, pod: Json) -> bool:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return node["spec"].get("unschedulable", False) and not tolerated(taint, pod)


def untolerated(node: Json, pod: Json) -> bool:
    hard = [one for one in node["spec"].get("taints", []) if one["effect"] != "PreferNoSchedule"]
    return not all(tolerated(taint, pod) for taint in hard)


def tolerated(taint: Json, pod: Json) -> bool:
    for one in pod["spec"].get("tolerations", []):
        effect = one.get("effect") in (None, "", taint["effect"])
        key = one.get("key") in (None, "", taint["key"])
        value = one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", "")
        if effect and key and value:
            return True
    return False


def wanted(node: Json, pod: Json) -> bool:
    spec = pod["spec"]
    selector = spec.get("nodeSelector", {})
    if any(labels(node).get(key) != value for key, value in selector.items()):
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if required is None:
        return True
    return any(term_met(term, node) for term in required["nodeSelectorTerms"])


def term_met(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    name = {"metadata.name": node["metadata"]["name"]}
    return (
        bool(expressions or fields)
        and all(meets(one, labels(node)) for one in expressions)
        and all(meets(one, name) for one in fields)
    )


def host_ports(pod: Json) -> Iterator[tuple[str, int, str]]:
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers", []) if c.get("restartPolicy") == "Always"]
    for container in sidecars + spec["containers"]:
        for port in container.get("ports", []):
            if port.get("hostPort"):
                yield (
                    port.get("protocol", "TCP"),
                    port["hostPort"],
                    port.get("hostIP") or "0.0.0.0",
                )


def ports_free(there: Iterable[Json], pod: Json) -> bool:
    for mine in host_ports(pod):
        for other in there:
            for theirs in host_ports(other):
                if mine[:2] == theirs[:2] and (
                    mine[2] == theirs[2] or "0.0.0.0" in (mine[2], theirs[2])
                ):
                    return False
    return True


def disks_free(there: Iterable[Json], pod: Json) -> bool:
    return not any(
        is_one_disk(mine, theirs)
        for other in there
        for mine in pod["spec"].get("volumes", [])
        for theirs in other["spec"].get("volumes", [])
    )


def is_one_disk(one: Json, other: Json) -> bool:
    """And not one that both only read."""
    for kind, key in (("gcePersistentDisk", "pdName"), ("iscsi", "iqn")):
        if kind in one and kind in other and one[kind][key] == other[kind][key]:
            return not only_read(one[kind], other[kind])
    if "awsElasticBlockStore" in one and "awsElasticBlockStore" in other:
        mine, theirs = one["awsElasticBlockStore"], other["awsElasticBlockStore"]
        return bool(mine["volumeID"] == theirs["volumeID"])  # even if both only read
    if "rbd" in one and "rbd" in other:
        mine, theirs = one["rbd"], other["rbd"]
        return (
            bool(set(mine["monitors"]) & set(theirs["monitors"]))
            and mine.get("pool", "rbd") == theirs.get("pool", "rbd")
            and mine["image"] == theirs["image"]
            and not only_read(mine, theirs)
        )
    return False


def only_read(one: Json, other: Json) -> bool:
    return bool(one.get("readOnly") and other.get("readOnly"))


def features_needed(pod: Json) -> set[str]:
    """As of Kubernetes 1.36."""
    found, spec = set(), pod["spec"]
    containers = spec.get("initContainers", []) + spec["containers"]
    rules = [rule for each in containers for rule in each.get("restartPolicyRules", [])]
    if any(rule["action"] == "RestartAllContainers" for rule in rules):
        found.add("RestartAllContainersOnContainerExits")
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.add("UserNamespacesHostNetworkSupport")
    return found


def features_declared(node: Json) -> set[str]:
    return set(node["status"].get("declaredFeatures", []))


def amount(text: str) -> Decimal:
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix) and text[: -len(suffix)].replace(".", "").isdecimal():
            return Decimal(text[: -len(suffix)]) * Decimal(factor)
    return Decimal(text)


def asked(pod: Json, resource: str) -> int:
    """Whole units: thousandths of a CPU, bytes or pieces."""

    def of(container: Json) -> Decimal:
        requests = container.get("resources", {}).get("requests", {})
        return amount(str(requests.get(resource, "0")))

    spec = pod["spec"]
    inits = spec.get("initContainers", [])
    running = sum(map(of, spec["containers"]), Decimal())
    running += sum((of(one) for one in inits if one.get("restartPolicy") == "Always"), Decimal())
    peak = running
    for index, container in enumerate(inits):
        before = (one for one in inits[:index] if one.get("restartPolicy") == "Always")
        peak = max(peak, of(container) + sum(map(of, before), Decimal()))
    whole = spec.get("resources", {}).get("requests", {})
    if resource in whole and (resource in ("cpu", "memory") or resource.startswith("hugepages-")):
        peak = amount(whole[resource])
    peak += amount(str(spec.get("overhead", {}).get(resource, "0")))
    return int((peak * (1000 if resource == "cpu" else 1)).to_integral_value(ROUND_CEILING))


def resources(pod: Json) -> set[str]:
    spec = pod["spec"]
    parts = [one.get("resources", {}) for one in spec["containers"]]
    parts += [one.get("resources", {}) for one in spec.get("initContainers", [])]
    return {name for part in parts for name in part.get("requests", {})}


def enough(node: Json, there: list[Json], pod: Json) -> bool:
    has = node["status"]["allocatable"]
    if len(there) + 1 > int(has.get("pods", 0)):
        return False
    for name in resources(pod):
        mine = asked(pod, name)
        total = amount(has.get(name, "0")) * (1000 if name == "cpu" else 1)
        if mine > 0 and mine + sum(asked(other, name) for other in there) > total:
            return False
    return True
