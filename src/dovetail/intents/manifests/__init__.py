"""Manifests of an app: which pods its objects make, and how an intent edits them. Pure.

quantities     amounts with units, as intents write them
reading        YAML and JSON to objects, within limits
workloads      objects that make pods: template, count, the pod as podfit reads it
templates      a pod template to the pod that the API server would make of it
requirements   the one rule by which requirements change a pod template: packing and editing
               both use it, so the pod that was packed is the pod that runs
grants         what an app was granted on one cluster: what editing is told
editing        an app's objects, edited for one cluster; every edit told
claims         devices of ResourceSlices: ResourceClaimTemplates and who uses them
diffs          before and after, as unified YAML
immutability   which changes of a live object need it to be replaced
exclusivity    QoS class, and whether CPUs will be exclusive
"""
