"""Class devices: devices that the scheduler gave to a pod, brought into its containers.

Who has them is a plugin of the node. To the admission each device plugin is one more resource
plugin, so CPUs, memory and devices are given together or not at all, and remembered in one
checkpoint. The parts:

    names       what resources of device plugins are called at the admission
    choice      which devices each container of a pod uses, by the allocation on the pod
    source      a pod source around another: pods with their devices
    injecting   whether the runtime brings them in
    reserving   devices are taken before their plugin is asked, and by one pod at a time
    adapter     a device plugin as a resource plugin
    plugins     these beside the resource plugins of the node
    trust       whether an allocation is to be believed
"""
