"""Device classes on Kubernetes: what nodes publish, what pods request, what classes have left.

The scheduler and the extender read the catalogue and the requests of pods; the daemon runs the
controller beside them. The parts:

    controller            class controller: publishes in the ledger, writes the status of classes
    catalogue             device classes and the devices of nodes, as the cluster publishes them
    sources               the devices of one node, from the three below
    node_annotation       devices that an annotation of the node lists, as agents write it
    slices                devices that DRA drivers publish in ResourceSlices
    extended_resources    pools of which a device plugin reports only a number
    device_requests       how many units of which classes a pod requests
    pod_annotation        the devices that a pod got, as its binding writes them on it
    resource_claims       the ResourceClaim of a pod that got devices of ResourceSlices
    publishing            has the ledger say what the catalogue says
    status                the numbers of a class, in the status of its ResourceClass
"""
