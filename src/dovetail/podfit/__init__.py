"""Which nodes fit a pod, by the rules of kube-scheduler's default filters, over all nodes at once.

`NodeTable` is kept up to date and asked; a `Demand` is what a pod asks of a node. Nothing here does
I/O. Devices of resource classes are not counted here: see `dovetail.devices`.
"""

from dovetail.podfit.demand import Demand, demand_of
from dovetail.podfit.limits import unsupported
from dovetail.podfit.scores.resources import Prefer
from dovetail.podfit.table import NodeTable
from dovetail.podfit.verdict import Verdict

__all__ = ["Demand", "NodeTable", "Prefer", "Verdict", "demand_of", "unsupported"]
