"""Required pod affinity: pods that all terms mean have to be near, in each term's topology.

The first pod of a group that wants to be near itself could never go anywhere. So where no pod is
meant yet and the pod means itself, a node that has the labels is enough.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.podfit.columns import Mask
from dovetail.podfit.demand import Demand
from dovetail.podfit.domains import Domains, means, meant
from dovetail.podfit.nodes import Nodes

REASON = "node(s) didn't match pod affinity rules"


def passing(nodes: Nodes, demand: Demand) -> Mask | None:
    if not demand.near:
        return None
    rows = nodes.pods.rows(meant(nodes, demand.near))
    found = False
    near: Mask = np.ones(nodes.size, np.bool_)
    labelled: Mask = np.ones(nodes.size, np.bool_)
    for term in demand.near:
        domains = Domains(nodes, term.topology)
        touched = domains.touched(rows)
        found = found or bool(touched.any())
        near &= touched.take(domains.of)
        labelled &= domains.known
    return labelled if not found and first_of_group(nodes, demand) else near


def first_of_group(nodes: Nodes, demand: Demand) -> bool:
    return all(means(nodes, term, demand.kind) for term in demand.near)


def reasons(_nodes: Nodes, _demand: Demand, failed: Mask) -> Counter[str]:
    return Counter({REASON: int(failed.sum())})


def why(nodes: Nodes, demand: Demand, row: int) -> str:
    labels = nodes.labels.of(row)
    for term in demand.near:
        if term.topology not in labels:
            return f"pod affinity wants label {term.topology}, which the node has not"
    places = " and ".join(f"{term.topology}={labels[term.topology]}" for term in demand.near)
    return f"pod affinity: no pod that it means is in {places}"
