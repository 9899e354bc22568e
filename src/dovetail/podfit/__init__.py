"""The finder for Kubernetes: which nodes of a cluster take a pod, by kube-scheduler's own rules.

Scheduler, extender and machines ask it, of all nodes at once. It is pure: no client, no I/O, no
clock; the caller feeds it nodes, pods and namespaces as the API has them. In the order of a
question:

* `objects`: Kubernetes' objects as far as Dovetail reads them;
* `pod_sum`: pod sums and QoS classes, the formula that scheduler, device classes and agent share;
* `pod_request`: what a pod requests of its node, read once per pod template (`PodRequest`);
* `table`: `NodeTable`, kept up to date and asked for where a pod fits and what is best, over
  `nodes` (columns by node), `labels`, `domains`, `terms`, `selectors` and `row_multiset`;
* `filters/`: a module per rule that rules nodes out, after kube-scheduler's Filter plugins;
* `scores/`: a module per preference, after its Score plugins;
* `filtered_nodes`: `FilteredNodes`, the nodes that pass all filters, and why the others do not;
* `packing/`: whether a set of pods fits on a set of nodes, all at once.

Devices of device classes are not counted here: see `dovetail.devices`. Callers import from the
modules: the agent needs `pod_sum`, but not the arrays behind `table`.
"""
