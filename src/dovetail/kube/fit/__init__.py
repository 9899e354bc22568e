"""Which nodes fit a pod, by the rules of kube-scheduler's default filters, over all nodes at once.

`NodeTable` is kept up to date and asked; a `Demand` is what a pod asks of a node. Nothing here does
I/O. Devices of resource classes are not counted here: see `dovetail.classes`.
"""

from dovetail.kube.fit.demand import Demand, demand_of
from dovetail.kube.fit.limits import unsupported
from dovetail.kube.fit.scores.resources import Prefer
from dovetail.kube.fit.table import NodeTable
from dovetail.kube.fit.verdict import Verdict

__all__ = ["Demand", "NodeTable", "Prefer", "Verdict", "demand_of", "unsupported"]
