"""HPA placement: which sets of apps each cluster takes, on which nodes, with which hardware. Pure.

The built-in `hpa` controller (`answer.hpa_answer`) is asked by `service/intents`. Whether pods fit
is decided by `podfit/packing`, exactly, with all pods of all apps at once. The parts, as a question
passes them:

    demand             what the pods of an app ask for, with some of its optional requirements
    cluster_shape      clusters that are the same to these pods but for names
    device_resources   device classes counted exactly, as resources of nodes
    packer             whether workloads fit on the nodes of a shape, and where
    quick_packing      first fit and totals, before the solver is asked
    subsets            the best set of options, and the largest sets of apps, by asking
    shape_decisions    all that is decided of a shape, within a budget
    refusals           why not, in a few words
    answer             the controller's answer for a fleet
    placement          nodes, devices and charges of apps on the cluster that was picked
    stranding          which workloads have to be pinned there
    explaining         one app on one cluster: what is short
    relaxing           and what would help
"""
