"""Stock of machines: named shapes sold from node pools, as rules without I/O (Imperator v1alpha1).

The operator (`kube/machines`), the webhook and `dovetail machines` call it.
"""
